package sweep

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/self"
)

// embedded is a NATS server in this process, whose store is a folder.
type embedded struct {
	*server.Server
	log *serverLog
}

// startServer starts one. Without an address it has no port: this process alone can connect to it.
func startServer(store, listen string, keys *Keys, limit int64) (*embedded, error) {
	o := &server.Options{
		ServerName: "gfnem", DontListen: listen == "", NoSigs: true, JetStream: true, StoreDir: store,
		JetStreamMaxStore: limit, JetStreamMaxMemory: 64 << 20, SyncInterval: 10 * time.Second, DisableJetStreamBanner: true,
		MaxControlLine: 4096, MaxPayload: 1 << 20, AuthTimeout: 5, TLSTimeout: 5,
	}
	if listen != "" {
		host, port, err := parseListen(listen)
		if err != nil {
			return nil, err
		}
		o.Host, o.Port = host, port
		if !loopback(host) && (!keys.hasServer() || !keys.hasSecret()) {
			return nil, badinput.Errorf("--listen %s is not on this machine alone, so that it needs TLS and a secret: make them with %s "+
				"and give --keys KEYS/sweep", listen, self.Command("sweep keys KEYS --host NAME"))
		}
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return nil, badinput.Errorf("--listen %s: %w", listen, err)
		}
		l.Close()
		if port == 0 {
			o.Port = server.RANDOM_PORT
		}
	}
	if keys.hasSecret() {
		o.CustomClientAuthentication, o.AlwaysEnableNonce = keys, true
	}
	if keys.hasServer() {
		pair, err := tls.LoadX509KeyPair(keys.path(certFile), keys.path(keyFile))
		if err != nil {
			return nil, badinput.Errorf("--keys: %w", err)
		}
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
		o.TLS = true
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("start the server of the sweep: %w", err)
	}
	e := &embedded{s, &serverLog{}}
	s.SetLoggerV2(e.log, false, false, false)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		e.stop()
		return nil, badinput.Errorf("the server of the sweep did not start: %s", e.log.reason("is another program at "+listen+"?"))
	}
	if !s.JetStreamEnabled() {
		e.stop()
		return nil, badinput.Errorf("the store %s cannot be used: %s", store, e.log.reason("is it damaged?"))
	}
	return e, nil
}

func (e *embedded) stop() {
	e.Shutdown()
	e.WaitForShutdown()
}

// address is where the server listens: what it was told, with its port if it was to choose one.
func (e *embedded) address(listen string) string {
	host, port, err := parseListen(listen)
	if addr, ok := e.Addr().(*net.TCPAddr); ok && err == nil && port == 0 {
		return net.JoinHostPort(host, strconv.Itoa(addr.Port))
	}
	return listen
}

// failure says why the server has given up its store; nil if it has not.
func (e *embedded) failure(store string) error {
	if e == nil || e.JetStreamEnabled() {
		return nil
	}
	return &storeError{fmt.Errorf("the server has closed its store %s: %s: make room there, or mend that, and give the same command again",
		store, e.log.reason("its disk is full or failed")), syscall.ENOSPC}
}

type storeError struct {
	error
	cause error
}

func (s *storeError) Unwrap() error { return s.cause }

func parseListen(listen string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(listen)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	if err != nil || port < 0 || port > 65535 || host == "" {
		return "", 0, badinput.Errorf("--listen %s: want HOST:PORT, such as 127.0.0.1:4222, or 0.0.0.0:4222 for all addresses", listen)
	}
	return host, port, nil
}

// loopback reports whether a host is this machine, and reached by nobody else.
func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var _ server.Authentication = (*Keys)(nil)

// Check implements server.Authentication: who has the token or the NKey may connect.
func (k *Keys) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if k.Token != "" && subtle.ConstantTimeCompare([]byte(o.Token), []byte(k.Token)) == 1 {
		return true
	}
	if k.Public == "" || o.Nkey != k.Public {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	public, err := nkeys.FromPublicKey(k.Public)
	return err == nil && public.Verify(c.GetNonce(), signature) == nil
}

// serverLog keeps the last error of a server, and prints nothing: what matters of it is said by whom it concerns.
type serverLog struct {
	mu   sync.Mutex
	last string
}

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) keep(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Sprintf(format, v...)
}

func (l *serverLog) reason(otherwise string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return otherwise
	}
	return l.last
}

func (l *serverLog) Noticef(string, ...any)         {}
func (l *serverLog) Warnf(string, ...any)           {}
func (l *serverLog) Debugf(string, ...any)          {}
func (l *serverLog) Tracef(string, ...any)          {}
func (l *serverLog) Errorf(format string, v ...any) { l.keep(format, v...) }
func (l *serverLog) Fatalf(format string, v ...any) { l.keep(format, v...) }
