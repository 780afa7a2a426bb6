package sweep

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/self"
)

// The files of keys: those of the sweep's machine, and those that its workers need.
const (
	certFile   = "cert.pem"
	keyFile    = "key.pem"
	caFile     = "ca.pem"
	tokenFile  = "token"
	publicFile = "nkey.pub"
	seedFile   = "nkey.seed"
	credsFile  = "user.creds" // of a NATS cluster
)

// Keys are what a sweep and its workers know each other by. Any of it may be missing.
type Keys struct {
	Dir    string
	Token  string
	Public string // the public NKey
	files  []string
}

// LoadKeys reads a folder that MakeKeys has made, or one with a part of its files; "" means none.
func LoadKeys(dir string) (*Keys, error) {
	k := &Keys{Dir: dir}
	if dir == "" {
		return k, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, badinput.Errorf("--keys: %w", err)
	}
	for _, e := range entries {
		k.files = append(k.files, e.Name())
	}
	for name, value := range map[string]*string{tokenFile: &k.Token, publicFile: &k.Public} {
		data, err := disk.ReadFile(k.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, badinput.Errorf("--keys: %w", err)
		}
		*value = strings.TrimSpace(string(data))
	}
	if !k.hasServer() && !k.hasSecret() && !k.has(caFile) {
		return nil, badinput.Errorf("--keys %s: there are no keys; %s makes some, in folders sweep and worker", dir,
			self.Command("sweep keys KEYS"))
	}
	return k, nil
}

func (k *Keys) path(name string) string { return filepath.Join(k.Dir, name) }
func (k *Keys) has(name string) bool    { return slices.Contains(k.files, name) }
func (k *Keys) hasServer() bool         { return k.has(certFile) && k.has(keyFile) }
func (k *Keys) hasSecret() bool {
	return k.Token != "" || k.Public != "" || k.has(seedFile) || k.has(credsFile)
}

// MakeKeys makes keys in a new folder: certificates for some hosts, a token and an NKey. Those in the folder sweep
// below it stay on the sweep's machine, those in worker are copied to the workers'.
func MakeKeys(dir string, hosts []string) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return badinput.Errorf("%s is there already: choose another folder for the keys", dir)
	}
	cert, key, ca, err := certificates(append(slices.Clone(hosts), "localhost", "127.0.0.1", "::1"))
	if err != nil {
		return err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, err := user.Seed()
	if err != nil {
		return err
	}
	public, err := user.PublicKey()
	if err != nil {
		return err
	}
	token := []byte(rand.Text() + rand.Text())
	if err := disk.MkdirAll(disk.OS{}, filepath.Dir(dir)); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".gfnem-keys-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	for folder, files := range map[string]map[string][]byte{
		"sweep":  {certFile: cert, keyFile: key, caFile: ca, tokenFile: token, publicFile: []byte(public)},
		"worker": {caFile: ca, tokenFile: token, seedFile: seed},
	} {
		if err := os.Mkdir(filepath.Join(made, folder), 0o700); err != nil {
			return err
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(made, folder, name), append(data, '\n'), 0o600); err != nil {
				return err
			}
		}
	}
	return os.Rename(made, dir)
}

// certificates makes an authority that signs one certificate and is forgotten.
func certificates(hosts []string) (cert, key, ca []byte, err error) {
	const validity = 10 * 365 * 24 * time.Hour
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	begin := time.Now().Add(-time.Hour) // clocks differ
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gfnem sweep"}, NotBefore: begin, NotAfter: begin.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hosts[0]}, NotBefore: begin, NotAfter: begin.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, authority.Public(), authority)
	if err != nil {
		return nil, nil, nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), authority)
	if err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(own)
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return encode("CERTIFICATE", leafDER), encode("PRIVATE KEY", keyDER), encode("CERTIFICATE", rootDER), err
}
