package backend

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// cudaStems are NVIDIA's libraries that XLA's CUDA plugin opens by name, each after those it needs. JAX loads the same
// ones from pip's packages before its plugin.
var cudaStems = []string{
	"libnvJitLink", "libcudart", "libnvrtc", "libcublasLt", "libcublas", "libcusparse", "libcusolver", "libcufft",
	"libcupti", "libnccl", "libnvshmem_host", "libcudnn",
}

// cudaDrivers are where the driver's library stands on machines whose loader is not told of it: containers of a GPU
// cluster, a Windows host.
var cudaDrivers = []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

var (
	cudaInPath = regexp.MustCompile(`xla_cuda(\d+)`)
	cudaInDir  = regexp.MustCompile(`^cu(\d+)$`)
)

// nvidiaPackages returns the folders of NVIDIA's packages that go with a plugin, those to prefer first: the ones beside
// it or, when it stands alone (in an environment laid over the system's Python, say), those of the other folders.
//
// Two layouts exist: one folder a library (nvidia/cublas, nvidia/cuda_nvcc) up to CUDA 12, and one folder for the
// toolkit (nvidia/cu13) since, with nvidia/cudnn and nvidia/nccl still beside it. Both may be there at once; then a
// plugin called xla_cuda13 takes cu13 first and xla_cuda12 never looks into it.
func (f *finder) nvidiaPackages(pluginPath string) []string {
	var dirs []string
	for dir, up := filepath.Dir(pluginPath), 0; up < 3 && dirs == nil; dir, up = filepath.Dir(dir), up+1 {
		dirs = newest(filepath.Join(dir, "nvidia", "*"))
	}
	if dirs == nil {
		for dir := range f.folders() {
			dirs = append(dirs, newest(filepath.Join(dir, "nvidia", "*"))...)
		}
	}
	var major string
	if m := cudaInPath.FindStringSubmatch(pluginPath); m != nil {
		major = m[1]
	}
	var toolkits, others []string
	for _, dir := range dirs {
		if m := cudaInDir.FindStringSubmatch(filepath.Base(dir)); m == nil {
			others = append(others, dir)
		} else if major == "" || m[1] == major {
			toolkits = append(toolkits, dir)
		}
	}
	return append(toolkits, others...)
}

// nvidiaModel returns the model of this machine's NVIDIA cards ("NVIDIA H200") as the driver tells it, or "" when they
// differ or the driver does not say: PJRT's own description is a number.
func (f *finder) nvidiaModel() string {
	var models []string
	files, _ := filepath.Glob(filepath.Join(f.root, "/proc/driver/nvidia/gpus/*/information"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(text), "Model:")
		model, _, _ := strings.Cut(after, "\n")
		models = append(models, strings.TrimSpace(model))
	}
	if models = slices.Compact(models); len(models) != 1 {
		return ""
	}
	return models[0]
}

// cudaLibraries lists the files to load before a plugin, in order: for each stem the first package that has it.
func cudaLibraries(packages []string) []string {
	var files []string
	for _, stem := range cudaStems {
		for _, dir := range packages {
			if m := newest(filepath.Join(dir, "lib", stem+".so.*")); len(m) > 0 {
				files = append(files, m[0])
				break
			}
		}
	}
	return files
}

// cudaDataDir returns the package that holds the compiler's files (ptxas, libdevice), or "".
func cudaDataDir(packages []string) string {
	for _, dir := range packages {
		for _, sign := range []string{"nvvm/libdevice", "bin/ptxas"} {
			if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// withDataDir adds the CUDA data folder to XLA_FLAGS, unless the user chose one. The flags are split at spaces, so a
// folder with one in its name is left to XLA's own search.
func withDataDir(flags, dir string) string {
	if dir == "" || strings.ContainsAny(dir, " \t") || strings.Contains(flags, "--xla_gpu_cuda_data_dir") {
		return flags
	}
	return strings.TrimSpace(flags + " --xla_gpu_cuda_data_dir=" + dir)
}
