package oracle_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flowlet/flowlet/internal/manifest"
)

// foreign are volumes that need more than the node: a plugin, a disk of some
// cloud, an object of the API server. That a volume has two types is checked
// for them too, see the other mutants.
var foreign = regexp.MustCompile(`^spec\.volumes\[\d+\]\.(gcePersistentDisk|awsElasticBlockStore|gitRepo|iscsi|glusterfs|rbd|` +
	`flexVolume|cinder|cephfs|flocker|fc|azureFile|azureDisk|vsphereVolume|quobyte|photonPersistentDisk|portworxVolume|scaleIO|storageos|csi|ephemeral) `)

// ruled: flowlet looks at the restart rules of an init container even where
// their policy is missing, and so finds more.
var ruled = regexp.MustCompile(`^spec\.initContainers\[\d+\]\.restartPolicyRules = `)

// lightly are the fields that only a scheduler, another operating system or a
// controller reads. flowlet checks them lightly or not at all.
func lightly(what string) bool {
	for _, prefix := range []string{
		"spec.affinity", "spec.topologySpreadConstraints", "spec.schedulingGroup", "spec.evictionResponders",
		"spec.resourceClaims", "spec.schedulingGates",
	} {
		if strings.HasPrefix(what, prefix) {
			return true
		}
	}
	return foreign.MatchString(what) || ruled.MatchString(what) || strings.Contains(what, "windowsOptions")
}

func TestVerdictsOnTheCorpus(t *testing.T) {
	for name, pod := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			pod := theirDefaults(t, pod)
			require.Empty(t, theirVerdict(t, pod), "the corpus is valid")
			require.Empty(t, manifest.Validate(pod))
		})
	}
}

func TestVerdictsOnMutants(t *testing.T) {
	for name, pod := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			all, refused, shown := mutants(pod), 0, map[string]bool{}
			for _, m := range all {
				if lightly(m.what) {
					continue
				}
				defaulted := theirDefaults(t, m.pod)
				theirs, ours := theirVerdict(t, defaulted), manifest.Validate(defaulted)
				if len(theirs) > 0 {
					refused++
				}
				path, _, _ := strings.Cut(m.what, " = ")
				if same(theirs, ours) || shown[path] {
					continue
				}
				shown[path] = true // one example of each field will do
				t.Errorf("%s\n  theirs %v\n  ours   %v", m.what, theirs, ours)
			}
			t.Logf("%d mutants, %d of them invalid", len(all), refused)
			require.Greater(t, refused, len(all)/10, "mutants that are all valid test nothing")
		})
	}
}

// TestReferencesToObjects: the ban of API objects, on every mutant.
func TestReferencesToObjects(t *testing.T) {
	for name, pod := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			for _, m := range append(mutants(pod), mutant{what: "unchanged", pod: pod}) {
				defaulted := theirDefaults(t, m.pod)
				if len(theirVerdict(t, defaulted)) > 0 {
					continue // it never comes so far
				}
				theirs, ours := theirReference(t, defaulted), manifest.ValidateStatic(defaulted)
				if theirs == "" {
					require.Empty(t, ours, m.what)
					continue
				}
				require.True(t, mentions(ours, theirs), "%s: theirs %q, ours %v", m.what, theirs, ours)
			}
		})
	}
}

func mentions(errs field.ErrorList, text string) bool {
	return slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.Contains(e.Detail, text) })
}

func same(theirs, ours field.ErrorList) bool {
	return (len(theirs) == 0) == (len(ours) == 0) && slices.Equal(fields(theirs), fields(ours))
}

var (
	index      = regexp.MustCompile(`\[\d+\]`)
	odd        = regexp.MustCompile(`spec\.resources\.containers(\[[^\]]*\])\.limits`)
	ephemerals = regexp.MustCompile(`spec\.ephemeralcontainers.*`)
	projected  = regexp.MustCompile(`spec\.volumes\.projected.*`)
)

// fields are the places that errors name, without the index in a list, which
// Kubernetes leaves out of some paths.
func fields(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, place(e.Field))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// place makes one spelling of the paths of both, which differ where those of
// Kubernetes do not name the field as it is called.
func place(path string) string {
	path = strings.ToLower(index.ReplaceAllString(path, ""))
	path = strings.Replace(path, "downwarapi", "downwardapi", 1)
	if strings.Contains(path, "downwardapi") {
		path = strings.Replace(path, ".items", "", 1)
	}
	path = strings.Replace(path, "spec.overhead.limits", "spec.overhead", 1)
	path = odd.ReplaceAllString(path, "spec.containers.resources.limits$1")
	path = strings.Replace(path, "spec.os.name", "spec.os", 1)
	path = projected.ReplaceAllString(path, "spec.volumes.projected")
	return ephemerals.ReplaceAllString(path, "spec.ephemeralcontainers")
}
