package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/run"
)

const anyPort = "127.0.0.1:0"

func madeKeys(t *testing.T) (dir string, sweep, worker *Keys) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "keys")
	if err := MakeKeys(dir, []string{"example.org"}); err != nil {
		t.Fatal(err)
	}
	sweep, err := LoadKeys(filepath.Join(dir, "sweep"))
	if err != nil {
		t.Fatal(err)
	}
	worker, err = LoadKeys(filepath.Join(dir, "worker"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, sweep, worker
}

// With keys a server lets in who has the token or the NKey, over TLS, and nobody else; each is told so in one line.
func TestKeys(t *testing.T) {
	dir, sweep, worker := madeKeys(t)
	_, _, stranger := madeKeys(t)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort, Keys: sweep})
	defer p.Close()
	address := "nats://" + p.Listen
	without := func(k *Keys, names ...string) *Keys {
		other := filepath.Join(t.TempDir(), "keys")
		if err := os.CopyFS(other, os.DirFS(k.Dir)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Remove(filepath.Join(other, name)); err != nil {
				t.Fatal(err)
			}
		}
		loaded, err := LoadKeys(other)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	mixed := without(stranger)
	write(t, mixed.path(caFile), read(t, worker.path(caFile)))
	mixedToken := without(mixed, seedFile)
	for name, c := range map[string]struct {
		keys *Keys
		want string
	}{
		"all":          {worker, ""},
		"token":        {without(worker, seedFile), ""},
		"nkey":         {without(worker, tokenFile), ""},
		"no secret":    {without(worker, seedFile, tokenFile), " refuses us: the token or the NKey of --keys is missing or wrong"},
		"other token":  {mixedToken, " refuses us: the token or the NKey of --keys is missing or wrong"},
		"other nkey":   {without(mixed, tokenFile), " refuses us: the token or the NKey of --keys is missing or wrong"},
		"no authority": {without(worker, caFile), " is not who it should be: failed to verify certificate: x509: certificate signed by unknown authority: give --keys with the ca.pem of the sweep"},
		"nothing":      {&Keys{}, " is not who it should be: failed to verify certificate: x509: certificate signed by unknown authority: give --keys with the ca.pem of the sweep"},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := Dial(t.Context(), address, "worker", c.keys, time.Minute)
			if nc != nil {
				nc.Close()
			}
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			testkit.BadInput(t, err, address+c.want)
		})
	}
	for name, secret := range map[string]bool{"sweep/key.pem": true, "sweep/token": true, "worker/nkey.seed": true} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	testkit.BadInput(t, MakeKeys(dir, nil), dir+" is there already: choose another folder for the keys")
}

// Off this machine there is no sweep without TLS and a secret, on either side.
func TestOffLoopback(t *testing.T) {
	_, err := OpenPool(t.Context(), PoolOptions{Dir: disktest.MemoryDir(t), Listen: "0.0.0.0:4222"})
	testkit.BadInput(t, err, "--listen 0.0.0.0:4222 is not on this machine alone, so that it needs TLS and a secret: make them with "+
		`"gfnem sweep keys KEYS --host NAME" and give --keys KEYS/sweep`)
	_, err = Dial(t.Context(), "nats://192.0.2.1:4222", "worker", &Keys{}, 0)
	testkit.BadInput(t, err, "nats://192.0.2.1:4222 is another machine, which needs a secret: give --keys with the folder worker of what "+
		`"gfnem sweep keys" has made`)
	_, err = Dial(t.Context(), "nats://me:secret@192.0.2.1:4222", "worker", &Keys{}, 0)
	testkit.BadInput(t, err, "192.0.2.1:4222: a secret does not belong into an address: put it into a folder, as the "+
		"file token or user.creds, and give that as --keys")
	_, err = Dial(t.Context(), "192.0.2.1:4222", "worker", &Keys{}, 0)
	testkit.BadInput(t, err, "192.0.2.1:4222: want an address such as nats://HOST:PORT")
	_, err = OpenPool(t.Context(), PoolOptions{Dir: disktest.MemoryDir(t), Listen: "4222"})
	testkit.BadInput(t, err, "--listen 4222: want HOST:PORT, such as 127.0.0.1:4222, or 0.0.0.0:4222 for all addresses")
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort})
	defer p.Close()
	_, err = OpenPool(t.Context(), PoolOptions{Dir: disktest.MemoryDir(t), Listen: p.Listen})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// A worker of another build is refused, whether it says so or not.
func TestOtherProgram(t *testing.T) {
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort})
	defer p.Close()
	nc, err := Dial(t.Context(), "nats://"+p.Listen, "worker", &Keys{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	w := Worker{Tasks: []run.Task{count{}}, Dir: disktest.MemoryDir(t), Patience: time.Minute, Program: "v9 0123456789ab"}
	testkit.BadInput(t, w.Run(t.Context(), nc), "the sweep is made by another build of the program ("+Program()+
		") than this one (v9 0123456789ab): give its workers the same")
}

// A server can have several sweeps, also one that is not ours.
func TestSeveralSweeps(t *testing.T) {
	store := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort})
	defer store.Close()
	address := "nats://" + store.Listen
	_, err := OpenPool(t.Context(), PoolOptions{Dir: disktest.MemoryDir(t), NATS: address})
	testkit.BadInput(t, err, "the sweep's server has too little room: lower --limit, or remove what sweeps before have left there")
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), NATS: address, Sweep: "mine", Workers: 1, Limit: 1 << 20})
	plan := plan(t, small)
	if _, err := plan.Run(t.Context(), p.grid(plan.Task)); err != nil {
		t.Fatal(err)
	}
	nc, err := Dial(t.Context(), address, "worker", &Keys{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	w := Worker{Tasks: []run.Task{count{}}, Dir: disktest.MemoryDir(t), Patience: time.Hour}
	if err := w.Run(t.Context(), nc); err == nil || !strings.Contains(err.Error(), "there are several sweeps: choose one by --sweep ") {
		t.Errorf("error %v", err)
	}
	dir := disktest.MemoryDir(t)
	ended := make(chan error, 1)
	go func() {
		w := Worker{Tasks: []run.Task{count{}}, Dir: dir, Sweep: "mine", Patience: time.Hour}
		ended <- w.Run(t.Context(), nc)
	}()
	eventually(t, "it waits for no cell", func() bool {
		info, err := p.board.todo.Info(t.Context())
		return err == nil && info.NumWaiting >= 2 // with the one of the pool
	})
	p.finish(t)
	if err := <-ended; err != nil {
		t.Errorf("a worker of a sweep that is gone: %v", err)
	}
	w = Worker{Tasks: []run.Task{count{}}, Dir: disktest.MemoryDir(t), Sweep: "mine"}
	testkit.BadInput(t, w.Run(t.Context(), nc), "the server has no such sweep")
}

// All cells are computed by the same kind of processor, unless it is allowed that they are not.
func TestComputes(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Mixed: mixed})
		for computes, want := range map[string]string{"first": "", "second": "the sweep is computed by first, and here that is second, " +
			"which gives other last digits: set GFNEM_SIMD to the lowest instructions of all machines, or give the sweep --mixed"} {
			if computes == "second" {
				if err := p.board.agree(t.Context(), "first"); err != nil {
					t.Error(err)
				}
			}
			if err := p.board.agree(t.Context(), computes); mixed || want == "" {
				if err != nil {
					t.Error(err)
				}
			} else {
				testkit.BadInput(t, err, want)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
