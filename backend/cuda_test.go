package backend

import (
	"slices"
	"strings"
	"testing"
)

func (tr *tree) expectLibraries(pluginPath string, want ...string) []string {
	tr.t.Helper()
	packages := tr.finder().nvidiaPackages(tr.at(pluginPath))
	got := cudaLibraries(packages)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], tr.at("/s/nvidia")+"/")
	}
	if !slices.Equal(got, want) {
		tr.t.Errorf("%s: libraries %q, want %q", pluginPath, got, want)
	}
	return packages
}

func TestCUDALibraries(t *testing.T) {
	both := newTree(t,
		"/s/"+cuda12, "/s/"+cuda13,
		"/s/nvidia/cublas/lib/libcublas.so.12", "/s/nvidia/cublas/lib/libcublasLt.so.12",
		"/s/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc", "/s/nvidia/cusparse/lib/libcusparse.so.12",
		"/s/nvidia/cu13/lib/libcublas.so.13", "/s/nvidia/cu13/lib/libcublasLt.so.13", "/s/nvidia/cu13/lib/libcusparse.so.12",
		"/s/nvidia/cu13/bin/ptxas", "/s/nvidia/cudnn/lib/libcudnn.so.9", "/s/nvidia/cudnn/lib/libcudnn_graph.so.9",
		"/s/nvidia/nccl/lib/libnccl.so.2")

	p := both.expectLibraries("/s/"+cuda13, "cu13/lib/libcublasLt.so.13", "cu13/lib/libcublas.so.13",
		"cu13/lib/libcusparse.so.12", "nccl/lib/libnccl.so.2", "cudnn/lib/libcudnn.so.9")
	if got := cudaDataDir(p); got != both.at("/s/nvidia/cu13") {
		t.Errorf("data dir %q", got)
	}
	p = both.expectLibraries("/s/"+cuda12, "cublas/lib/libcublasLt.so.12", "cublas/lib/libcublas.so.12",
		"cusparse/lib/libcusparse.so.12", "nccl/lib/libnccl.so.2", "cudnn/lib/libcudnn.so.9")
	if got := cudaDataDir(p); got != both.at("/s/nvidia/cuda_nvcc") {
		t.Errorf("data dir %q", got)
	}

	// A plugin in an environment of its own, over a Python that has the libraries.
	apart := newTree(t, "/venv/lib/python3.12/site-packages/"+cuda13, "/s/nvidia/cu13/lib/libcudart.so.13")
	apart.py = []string{apart.at("/s")}
	apart.expectLibraries("/venv/lib/python3.12/site-packages/"+cuda13, "cu13/lib/libcudart.so.13")

	none := newTree(t, "/p/pjrt_c_api_cuda_plugin.so")
	if p := none.expectLibraries("/p/pjrt_c_api_cuda_plugin.so"); cudaDataDir(p) != "" {
		t.Error("a data dir out of nowhere")
	}
}

func TestWithDataDir(t *testing.T) {
	for _, c := range []struct{ flags, dir, want string }{
		{"", "", ""},
		{"", "/n/cu13", "--xla_gpu_cuda_data_dir=/n/cu13"},
		{"--xla_dump_to=/d", "/n/cu13", "--xla_dump_to=/d --xla_gpu_cuda_data_dir=/n/cu13"},
		{"--xla_gpu_cuda_data_dir=/mine", "/n/cu13", "--xla_gpu_cuda_data_dir=/mine"},
		{"--xla_dump_to=/d", "/my files/cu13", "--xla_dump_to=/d"},
	} {
		if got := withDataDir(c.flags, c.dir); got != c.want {
			t.Errorf("withDataDir(%q, %q) = %q, want %q", c.flags, c.dir, got, c.want)
		}
	}
}
