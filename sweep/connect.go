package sweep

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/self"
)

// connectOptions are those of every connection: it comes back by itself, and what is asked meanwhile fails at once.
func connectOptions(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.ReconnectBufSize(-1),
		nats.Timeout(5 * time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
}

// connectIn connects to the server in this process.
func connectIn(s *embedded, keys *Keys) (*nats.Conn, error) {
	o := append(connectOptions("sweep"), nats.InProcessServer(s))
	switch {
	case keys.Token != "":
		o = append(o, nats.Token(keys.Token))
	case keys.Public != "":
		return nil, badinput.Errorf("--keys %s has no token, by which the sweep knows itself", keys.Dir)
	}
	return nats.Connect("", o...)
}

// Dial connects to a server, and waits so long for one that does not answer. Off this machine it insists on TLS and a
// secret.
func Dial(ctx context.Context, address, name string, keys *Keys, patience time.Duration) (*nats.Conn, error) {
	o := connectOptions(name)
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(one)
		if err == nil && u.User != nil { // runs keep the command that made them, and processes are listed with theirs
			return nil, badinput.Errorf("%s: a secret does not belong into an address: put it into a folder, as the file %s or %s, and "+
				"give that as --keys", u.Host, tokenFile, credsFile)
		}
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return nil, badinput.Errorf("%s: want an address such as nats://HOST:PORT", one)
		}
		if loopback(u.Hostname()) {
			continue
		}
		if !keys.hasSecret() {
			return nil, badinput.Errorf("%s is another machine, which needs a secret: give --keys with the folder worker of what "+
				"%s has made", one, self.Command("sweep keys"))
		}
		o = append(o, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if keys.has(caFile) {
		o = append(o, nats.RootCAs(keys.path(caFile)))
	}
	switch {
	case keys.has(credsFile):
		o = append(o, nats.UserCredentials(keys.path(credsFile)))
	case keys.has(seedFile):
		nkey, err := nats.NkeyOptionFromSeed(keys.path(seedFile))
		if err != nil {
			return nil, badinput.Errorf("--keys: %s: %w", keys.path(seedFile), err)
		}
		o = append(o, nkey)
	case keys.Token != "":
		o = append(o, nats.Token(keys.Token))
	}
	for deadline := time.Now().Add(patience); ; {
		nc, err := nats.Connect(address, o...)
		if err == nil {
			return nc, nil
		}
		if refused := refusal(address, err); refused != nil {
			return nil, refused
		}
		if time.Now().After(deadline) {
			return nil, badinput.Errorf("%s does not answer: %w", address, cleaned{err})
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to %s: %w", address, context.Cause(ctx))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// Reachable returns the address of a sweep for workers on other machines: of a server that listens at HOST:PORT, or of a
// NATS cluster. It is an error if they cannot reach it.
func Reachable(listen, address string) (string, error) {
	if listen != "" {
		if _, _, err := parseListen(listen); err != nil {
			return "", err
		}
		address = "nats://" + listen
	}
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(one)
		if err != nil || u.Hostname() == "" {
			return "", badinput.Errorf("%s: want an address such as nats://HOST:PORT", one)
		}
		if ip := net.ParseIP(u.Hostname()); loopback(u.Hostname()) || ip != nil && ip.IsUnspecified() || u.Port() == "0" {
			return "", badinput.Errorf("workers on other machines cannot reach %s: give the name of the machine that the sweep runs on, "+
				"and a port", one)
		}
	}
	return address, nil
}

// refusal is the error of a server that does not want us, or that we do not trust: to ask again is no use.
func refusal(address string, err error) error {
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrNkeysNotSupported):
		return badinput.Errorf("%s refuses us: the token or the NKey of --keys is missing or wrong", address)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return badinput.Errorf("%s has no TLS, and another machine is trusted only with it", address)
	case errors.As(err, &other):
		return badinput.Errorf("%s is not who it should be: %v: make its keys with --host and the name that workers use", address, cleaned{other})
	case errors.As(err, &verify), errors.As(err, &unknown):
		return badinput.Errorf("%s is not who it should be: %s: give --keys with the %s of the sweep", address,
			strings.TrimPrefix(clean(err.Error()), "nats: tls error: tls: "), caFile)
	}
	return nil
}
