package sweep

import (
	"fmt"
	"io"
	"text/template"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/self"
)

// WorkerCommand is what starts a worker.
func WorkerCommand(address string, keys bool) string {
	text := self.Name() + " worker " + address
	if keys {
		text += " --keys KEYS/worker"
	}
	return text
}

// scripts start workers on clusters.
var scripts = map[string]*template.Template{
	"slurm": template.Must(template.New("slurm").Parse(`#!/bin/bash
# Starts {{.Workers}} workers of a sweep: sbatch THIS-FILE. The sweep itself runs on {{.Address}}.
#SBATCH --job-name={{.Name}}-worker
#SBATCH --array=1-{{.Workers}}
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:TERM@60
#SBATCH --output=worker-%A-%a.log
# A worker that is told to end hands back what it has; its exit code is then 3.
export GOMAXPROCS="${SLURM_CPUS_PER_TASK:-1}"
exec {{.Name}} worker {{.Address}}{{if .Keys}} --keys "{{.Keys}}"{{end}} --work "${TMPDIR:-/tmp}"
`)),
	"kubernetes": template.Must(template.New("kubernetes").Parse(`# Starts {{.Workers}} workers of a sweep: kubectl apply -f THIS-FILE. The sweep itself runs on {{.Address}}.
# Put your image in place of IMAGE; it needs nothing but the program.
{{- if .Keys}}
# Before: kubectl create secret generic {{.Name}}-keys --from-file={{.Keys}}
{{- end}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}-worker
spec:
  completionMode: Indexed
  completions: {{.Workers}}
  parallelism: {{.Workers}}
  backoffLimit: {{.Retries}}
  template:
    spec:
      restartPolicy: OnFailure
      containers:
        - name: worker
          image: IMAGE
          command: ["{{.Name}}", "worker", "{{.Address}}"{{if .Keys}}, "--keys", "/keys"{{end}}, "--work", "/work"]
          resources:
            requests: {cpu: "1", memory: 1Gi}
          volumeMounts:
            - {name: work, mountPath: /work}
{{- if .Keys}}
            - {name: keys, mountPath: /keys, readOnly: true}
{{- end}}
      volumes:
        - {name: work, emptyDir: {}}
{{- if .Keys}}
        - name: keys
          secret: {secretName: {{.Name}}-keys, defaultMode: 0400}
{{- end}}
`)),
}

// Emit writes a script for a kind of cluster, slurm or kubernetes, that starts workers of a sweep at an address. Keys
// is the folder of the workers' keys; "" means none.
func Emit(w io.Writer, kind, address, keys string, workers int) error {
	script, ok := scripts[kind]
	if !ok {
		return badinput.Errorf("--emit %s: want slurm or kubernetes", kind)
	}
	if err := script.Execute(w, struct {
		Name, Address, Keys string
		Workers, Retries    int
	}{self.Name(), address, keys, workers, 10 * workers}); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return nil
}
