package backend

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute"
)

// Info says which engine a run used, for `gfnem version` and the provenance of a run.
type Info struct {
	Name        string   `json:"name"`             // as Open knows it: "go", "xla"
	Description string   `json:"description"`      // the engine's own words: plugin, version
	Plugin      string   `json:"plugin,omitempty"` // path of the PJRT plugin
	Devices     []string `json:"devices,omitempty"`
}

// String is Info in one line.
func (i Info) String() string {
	if len(i.Devices) == 0 {
		return i.Description
	}
	return fmt.Sprintf("%s; devices: %s", i.Description, strings.Join(i.Devices, ", "))
}

// Describe says what an open backend is.
func Describe(b compute.Backend) Info {
	info := Info{Name: b.String(), Description: oneLine(b.Description())}
	if p, ok := b.(interface{ PluginName() string }); ok {
		info.Plugin = p.PluginName()
		for d := range b.NumDevices() {
			info.Devices = append(info.Devices, oneLine(b.DeviceDescription(compute.DeviceNum(d))))
		}
	}
	return info
}
