package oracle_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	theirconfig "k8s.io/kubelet/config/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	configv1beta1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"

	"github.com/flowlet/flowlet/internal/config"
)

// configurations is how many are tried by a run.
const configurations = 10_000

// load is what flowlet makes of a configuration.
func load(t *testing.T, file string, kc *theirconfig.KubeletConfiguration) (*config.Config, error) {
	t.Helper()
	data, err := json.Marshal(kc)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	fs := pflag.NewFlagSet("flowlet", pflag.ContinueOnError)
	flags := config.AddFlags(fs)
	require.NoError(t, fs.Parse([]string{"--config", file, "--hostname-override", node}))
	return config.Load(flags)
}

// theirView is what a kubelet makes of it, in a file of dir.
func theirView(t *testing.T, s *kruntime.Scheme, dir string, kc *theirconfig.KubeletConfiguration) (*theirconfig.KubeletConfiguration, error) {
	t.Helper()
	out := &theirconfig.KubeletConfiguration{} // as it is written: what is empty is not there
	data, err := json.Marshal(kc)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, out))
	configv1beta1.SetDefaults_KubeletConfiguration(out)
	internal := &kubeletconfig.KubeletConfiguration{}
	require.NoError(t, s.Convert(out, internal, nil))
	for _, path := range kubeletconfig.KubeletConfigurationPathRefs(internal) {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	return out, validation.ValidateKubeletConfiguration(internal, utilfeature.DefaultFeatureGate)
}

// TestConfigurations: same defaults, same verdict, and what is wrong is named
// alike, over configurations with up to three odd fields: each field in turn,
// and others beside it.
func TestConfigurations(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	fields := leaves(reflect.TypeFor[theirconfig.KubeletConfiguration](), nil)
	require.Greater(t, len(fields), 120)
	for part := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			c := comparison{file: filepath.Join(t.TempDir(), "kubelet.json"), shown: map[string]bool{}}
			var err error
			c.scheme, _, err = scheme.NewSchemeAndCodecs()
			require.NoError(t, err)
			tried := 0
			for i := part; i < configurations; i += runtime.GOMAXPROCS(0) {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				kc := &theirconfig.KubeletConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration"}}
				what := []string{fields[i%len(fields)].fill(r, kc)}
				for range r.IntN(3) {
					what = append(what, fields[r.IntN(len(fields))].fill(r, kc))
				}
				machineApart(kc)
				c.compare(t, fmt.Sprintf("seed %d, number %d", seed, i), what, kc)
				tried++
			}
			t.Logf("%d configurations, %d of them invalid", tried, c.refused)
			require.Greater(t, c.refused, tried/20, "configurations that are all valid test nothing")
		})
	}
}

// comparison compares configurations, one after the other.
type comparison struct {
	file    string
	scheme  *kruntime.Scheme
	refused int             // by a kubelet
	shown   map[string]bool // fields of which an example was shown
}

func (c *comparison) compare(t *testing.T, number string, what []string, kc *theirconfig.KubeletConfiguration) {
	t.Helper()
	theirs, theirErr := theirView(t, c.scheme, filepath.Dir(c.file), kc)
	ours, err := load(t, c.file, kc)
	if theirErr != nil {
		c.refused++
	}
	problem := ""
	switch {
	case theirErr == nil && err != nil && !stricter(err):
		problem = fmt.Sprintf("only ours refuses: %v", err)
	case theirErr != nil && err == nil:
		problem = fmt.Sprintf("only theirs refuses: %v", theirErr)
	case err == nil:
		problem = cmp.Diff(theirs, ours.Kubelet, cmpopts.EquateEmpty(), relativeTo(filepath.Dir(c.file)),
			cmpopts.IgnoreFields(theirconfig.KubeletConfiguration{}, "EvictionHard")) // the kubelet defaults it where it starts
	case theirErr != nil && !sharesAName(theirErr.Error(), err.Error()):
		problem = fmt.Sprintf("other fields: theirs %v\n  ours   %v", theirErr, err)
	}
	if field, _, _ := strings.Cut(what[0], " = "); problem != "" && !c.shown[field] {
		c.shown[field] = true
		t.Errorf("%s: %s\n  %s", number, strings.Join(what, ", "), problem)
	}
}

// relativeTo takes a relative path for the one that it becomes in a file of dir.
func relativeTo(dir string) cmp.Option {
	return cmp.Comparer(func(a, b string) bool {
		return a == b || a != "" && b != "" && (filepath.Join(dir, a) == b || filepath.Join(dir, b) == a)
	})
}

// atStart are the fields that the kubelet's validation lets pass and that the
// kubelet then refuses, or stumbles over, when it starts. flowlet says so first.
func atStart() []string {
	return []string{
		// not of the kind that is needed, which shows when it is used
		"address", "healthzBindAddress", "clusterDNS", "clusterDomain", "containerLogMaxSize", "containerRuntimeEndpoint", "imageServiceEndpoint",
		"kubeReserved", "systemReserved", "qosReserved", "userNamespaces.idsPerPod", "registerWithTaints", "cgroupRoot",
		// no such policy, driver or mode
		"authorization.mode", "cgroupDriver", "cpuManagerPolicy", "memoryManagerPolicy",
	}
}

// stricter reports whether all that flowlet refuses is refused by a kubelet too,
// only later.
func stricter(err error) bool {
	for line := range strings.Lines(strings.TrimPrefix(err.Error(), "invalid configuration:\n")) {
		finding := strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(finding, ".json: "); ok { // the file that set it
			finding = rest
		}
		field, _, _ := strings.Cut(finding, ":")
		of := func(prefix string) bool { return strings.HasPrefix(field, prefix) }
		negative := strings.Contains(finding, "must be 0s or more") // a duration: the kubelet panics, or takes it for none
		if !negative && !slices.ContainsFunc(atStart(), of) {
			return false
		}
	}
	return true
}

// machineApart takes away what is judged by the machine that the test runs on,
// or by the version that the kubelet was built as.
func machineApart(kc *theirconfig.KubeletConfiguration) {
	kc.FailCgroupV1 = new(bool)
	if kc.SingleProcessOOMKill != nil && !*kc.SingleProcessOOMKill {
		kc.SingleProcessOOMKill = nil
	}
	kc.ShowHiddenMetricsForVersion = ""
}

var words = regexp.MustCompile(`[A-Za-z]{4,}`)

// sharesAName reports whether two error texts name one field alike.
func sharesAName(theirs, ours string) bool {
	common := []string{"invalid", "value", "kubelet", "configuration", "supported", "values", "must", "with", "json"}
	names := func(text, in string) bool {
		return slices.ContainsFunc(words.FindAllString(text, -1), func(w string) bool {
			w = strings.ToLower(w)
			return !slices.Contains(common, w) && strings.Contains(strings.ToLower(in), w)
		})
	}
	return names(theirs, ours) || names(ours, theirs)
}

// leaf is a field of the configuration that has a value of its own.
type leaf struct {
	path  string
	index []int
}

func leaves(t reflect.Type, index []int, names ...string) (out []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(index[:len(index):len(index)], i)
		path := append(names[:len(names):len(names)], name)
		switch held := indirect(f.Type); {
		case f.Name == "TypeMeta":
		case held.Kind() == reflect.Struct && held != reflect.TypeFor[metav1.Duration]() && strings.Contains(held.PkgPath(), "config"):
			out = append(out, leaves(held, at, path...)...)
		default:
			out = append(out, leaf{strings.Join(path, "."), at})
		}
	}
	return out
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// fill sets the field to something, and says to what.
func (l leaf) fill(r *rand.Rand, kc *theirconfig.KubeletConfiguration) string {
	v := reflect.ValueOf(kc).Elem()
	for _, i := range l.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	stir(r, v, 0)
	text, _ := json.Marshal(v.Interface())
	return fmt.Sprintf("%s = %.60s", l.path, text)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func stir(r *rand.Rand, v reflect.Value, depth int) {
	if d, ok := v.Addr().Interface().(*metav1.Duration); ok {
		d.Duration = pick(r, 0, -time.Second, time.Nanosecond, time.Millisecond, time.Second, 10*time.Second, time.Minute, time.Hour, 400*time.Hour)
		return
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		if json.Unmarshal([]byte(pick(r, `"0"`, `"1"`, `"1Gi"`, `"-1"`, `"10%"`)), u) == nil {
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(pick(r, "", "ok", "Upper", "1.2.3.4", "::1", "0.0.0.0", "/abs", "/abs/../x", "rel", "none", "static", "None", "Static", "best-effort", "systemd", "cgroupfs",
			"Webhook", "AlwaysAllow", "LimitedSwap", "NoSwap", "pod", "container", "Get", "Watch", "Cache", "text", "json", "VersionTLS12", "unix:///run/x.sock", "100Mi", "50%", "1m",
			"AlwaysVerify", "NeverVerify", "single-numa-node", "hairpin-veth", "promiscuous-bridge"))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(pick[int64](r, -1000, -1, 0, 1, 2, 50, 85, 100, 101, 1000, 4096, 65535, 70000, 1<<30))
	case reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		v.SetUint(pick[uint64](r, 0, 1, 4, 100))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(pick(r, -1, 0, 0.5, 0.9, 1, 2))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		stir(r, v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 2))
		for range pick(r, 0, 1, 1, 2) {
			e := reflect.New(v.Type().Elem()).Elem()
			stir(r, e, depth+1)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		stirMap(r, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && r.IntN(3) > 0 && depth < 5 {
				stir(r, f, depth+1)
			}
		}
	}
}

func stirMap(r *rand.Rand, v reflect.Value, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	if v.Type() == reflect.TypeFor[map[string]bool]() { // feature gates
		for _, gate := range []string{"QOSReserved", "MemoryQoS", "DefaultPodSysctls", "KubeletCrashLoopBackOffMax"} {
			if r.IntN(2) == 0 {
				v.SetMapIndex(reflect.ValueOf(gate), reflect.ValueOf(r.IntN(2) == 0))
			}
		}
		return
	}
	for range pick(r, 0, 1, 1, 2) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if key.Kind() == reflect.String {
			key.SetString(pick(r, "memory.available", "nodefs.available", "imagefs.inodesFree", "pid.available", "cpu", "memory", "ephemeral-storage", "pid", "bad", "kernel.msgmax", "10"))
		} else {
			stir(r, key, depth+1)
		}
		stir(r, value, depth+1)
		v.SetMapIndex(key, value)
	}
}
