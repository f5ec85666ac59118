//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The Kubernetes objects in the guide, as far as it uses them. A member that is not here is
// an error.
type (
	manifest struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   objectMeta        `yaml:"metadata"`
		Data       map[string]string `yaml:"data"`
		Spec       struct {
			Selector        yaml.Node `yaml:"selector"`
			SessionAffinity string    `yaml:"sessionAffinity"`
			Ports           []struct {
				Name       string `yaml:"name"`
				Port       int    `yaml:"port"`
				TargetPort string `yaml:"targetPort"`
			} `yaml:"ports"`
			MinAvailable int    `yaml:"minAvailable"`
			ServiceName  string `yaml:"serviceName"`
			Replicas     int    `yaml:"replicas"`
			Template     struct {
				Metadata objectMeta `yaml:"metadata"`
				Spec     podSpec    `yaml:"spec"`
			} `yaml:"template"`
			VolumeClaimTemplates []struct {
				Metadata objectMeta `yaml:"metadata"`
				Spec     struct {
					AccessModes []string  `yaml:"accessModes"`
					Resources   resources `yaml:"resources"`
				} `yaml:"spec"`
			} `yaml:"volumeClaimTemplates"`
		} `yaml:"spec"`
	}
	objectMeta struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	}
	podSpec struct {
		AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
		TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               struct {
			RunAsNonRoot   bool  `yaml:"runAsNonRoot"`
			RunAsUser      int64 `yaml:"runAsUser"`
			FSGroup        int64 `yaml:"fsGroup"`
			SeccompProfile struct {
				Type string `yaml:"type"`
			} `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []struct {
			Name  string   `yaml:"name"`
			Image string   `yaml:"image"`
			Args  []string `yaml:"args"`
			Env   []struct {
				Name      string `yaml:"name"`
				ValueFrom struct {
					SecretKeyRef struct {
						Name string `yaml:"name"`
						Key  string `yaml:"key"`
					} `yaml:"secretKeyRef"`
				} `yaml:"valueFrom"`
			} `yaml:"env"`
			Ports []struct {
				Name          string `yaml:"name"`
				ContainerPort int    `yaml:"containerPort"`
			} `yaml:"ports"`
			ReadinessProbe  probe     `yaml:"readinessProbe"`
			LivenessProbe   probe     `yaml:"livenessProbe"`
			Resources       resources `yaml:"resources"`
			SecurityContext struct {
				AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
				ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
				Capabilities             struct {
					Drop []string `yaml:"drop"`
				} `yaml:"capabilities"`
			} `yaml:"securityContext"`
			VolumeMounts []struct {
				Name      string `yaml:"name"`
				MountPath string `yaml:"mountPath"`
				ReadOnly  bool   `yaml:"readOnly"`
			} `yaml:"volumeMounts"`
		} `yaml:"containers"`
		Volumes []struct {
			Name      string `yaml:"name"`
			ConfigMap *struct {
				Name string `yaml:"name"`
			} `yaml:"configMap"`
			PersistentVolumeClaim *struct {
				ClaimName string `yaml:"claimName"`
				ReadOnly  bool   `yaml:"readOnly"`
			} `yaml:"persistentVolumeClaim"`
			EmptyDir *struct {
				SizeLimit string `yaml:"sizeLimit"`
			} `yaml:"emptyDir"`
		} `yaml:"volumes"`
	}
	probe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
)

// manifests returns the objects in the guide for teams, by kind.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/run-it-for-a-team.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n```yml\n")
	text, _, found := strings.Cut(text, "\n```\n")
	if !found {
		t.Fatal("the guide has no manifests")
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	all := make(map[string]manifest)
	for {
		var m manifest
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the manifests: %v", err)
		}
		all[m.Kind] = m
	}
}

// The manifests of the guide use only existing flags, variables, configuration keys, ports,
// volumes and paths; the paths are requested from a server.
func TestManifests(t *testing.T) {
	all := manifests(t)
	set, service, config := all["StatefulSet"].Spec, all["Service"].Spec, all["ConfigMap"]
	if len(all) != 4 || len(set.Template.Spec.Containers) != 1 || len(service.Ports) != 1 {
		t.Fatalf("the guide has %d objects", len(all))
	}
	pod, c := set.Template.Spec, set.Template.Spec.Containers[0]
	dir, env := home(t)
	file := filepath.Join(dir, "config.yaml")
	write(t, file, config.Data["config.yaml"])
	cmd := exec.Command("packs-mcp", "audit", "show", "--config", file) // reads it, and finds that the log is elsewhere
	cmd.Env = append(env, "PACKS_MCP_STORE_KEY="+strings.Repeat("5e", 32))
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("in the store that replicas share")) {
		t.Errorf("the configuration of the manifests: %v, %s", err, out)
	}
	help, err := exec.Command("packs-mcp", c.Args[0], "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	mounted := make(map[string]bool)
	for _, m := range c.VolumeMounts {
		mounted[m.MountPath] = true
	}
	for _, arg := range c.Args[1:] {
		if strings.HasPrefix(arg, "--") && !bytes.Contains(help, []byte(arg+" ")) {
			t.Errorf("%s has no flag %s", c.Args[0], arg)
		}
		if strings.HasPrefix(arg, "/") && !mounted[filepath.Dir(arg)] {
			t.Errorf("%s is in no volume", arg)
		}
	}
	variables, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Env {
		if !bytes.Contains(variables, []byte("`"+e.Name+"`")) {
			t.Errorf("there is no variable %s", e.Name)
		}
	}
	if !strings.Contains(config.Data["config.yaml"], fmt.Sprintf("addr: 0.0.0.0:%d\n", c.Ports[0].ContainerPort)) {
		t.Errorf("the server does not listen on the container's port %d", c.Ports[0].ContainerPort)
	}
	for what, port := range map[string]string{"the service": service.Ports[0].TargetPort, "readiness": c.ReadinessProbe.HTTPGet.Port, "liveness": c.LivenessProbe.HTTPGet.Port} {
		if port != c.Ports[0].Name {
			t.Errorf("%s names the port %q, and the container has %q", what, port, c.Ports[0].Name)
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range set.VolumeClaimTemplates {
		volumes[v.Metadata.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	if drain := regexp.MustCompile(`drain: (\d+)s`).FindStringSubmatch(config.Data["config.yaml"]); drain == nil || fmt.Sprint(pod.TerminationGracePeriodSeconds) <= drain[1] {
		t.Errorf("a pod is killed after %d s, while it drains: %v", pod.TerminationGracePeriodSeconds, drain)
	}
	write(t, file, fmt.Sprintf("packs: [%q]\nhttp: {token: %s}\n", plantedPacks(t), adasToken))
	g := startTeam(t, dir, env, file)
	for _, p := range []probe{c.ReadinessProbe, c.LivenessProbe} {
		if status, _, body := g.get(p.HTTPGet.Path); status != 200 {
			t.Errorf("%s = %d, %s", p.HTTPGet.Path, status, body)
		}
	}
}

func plantedPacks(t *testing.T) string {
	t.Helper()
	packs := t.TempDir()
	plantPack(t, packs, "notes", "true\n")
	return packs
}
