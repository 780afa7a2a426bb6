package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
)

// Info says which engine a run used, for `gfnem version` and the provenance of a run.
type Info struct {
	Name        string   `json:"name"`             // as Open knows it: "go", "xla"
	Description string   `json:"description"`      // the engine's own words
	Plugin      string   `json:"plugin,omitempty"` // path of the PJRT plugin
	Devices     []string `json:"devices,omitempty"`
}

// String is Info in one line.
func (i Info) String() string {
	if len(i.Devices) == 0 {
		return i.Description
	}
	return fmt.Sprintf("%s on %s", i.Description, strings.Join(i.Devices, ", "))
}

// Describe says what an open backend is.
func Describe(b compute.Backend) Info {
	info := Info{Name: b.String(), Description: oneLine(b.Description())}
	p, ok := b.(interface{ PluginName() string })
	if !ok {
		return info
	}
	info.Plugin = p.PluginName()
	info.Description = strings.TrimPrefix(info.Description, fmt.Sprintf("%s:%s - ", info.Name, info.Plugin))
	for d := range b.NumDevices() {
		name, _, _ := strings.Cut(oneLine(b.DeviceDescription(compute.DeviceNum(d))), " [processId=")
		if model := machine().nvidiaModel(); model != "" && strings.HasPrefix(name, "cuda") {
			name += " (" + model + ")"
		}
		info.Devices = append(info.Devices, name)
	}
	return info
}

// nvidiaModel returns the model of this machine's NVIDIA cards ("NVIDIA H200") as the driver tells it, or "" when they
// differ or the driver does not say: PJRT's own description is a number.
func (f *finder) nvidiaModel() string {
	var models []string
	files, _ := filepath.Glob(filepath.Join(f.root, "/proc/driver/nvidia/gpus/*/information"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if model, ok := strings.CutPrefix(line, "Model:"); ok {
				models = append(models, strings.TrimSpace(model))
			}
		}
	}
	if models = slices.Compact(models); len(models) != 1 {
		return ""
	}
	return models[0]
}
