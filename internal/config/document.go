package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/internal/plain"
)

// document is one file of configuration as written.
type document struct {
	file     string
	tree     map[string]any
	warnings []string
}

// readDocument reads a KubeletConfiguration. Relative paths in it are resolved
// against its directory.
func readDocument(file string) (*document, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", file, err)
	}
	data, err := os.ReadFile(abs)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file: %w", err)
	}
	d, err := decodeDocument(abs, data)
	if err != nil {
		return nil, err
	}
	resolvePaths(d.tree, filepath.Dir(abs))
	return d, nil
}

// decodeDocument is strict first: unknown and duplicate fields become
// warnings, anything else that does not fit the type is an error per field.
func decodeDocument(file string, data []byte) (*document, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s: the file is empty; it must hold a KubeletConfiguration", file)
	}
	d := &document{file: file}
	if err := yaml.Unmarshal(data, &d.tree); err != nil {
		return nil, fmt.Errorf("%s: is not valid YAML or JSON: %w", file, err)
	}
	if secondDocument(data) {
		return nil, fmt.Errorf("%s: holds several YAML documents; one KubeletConfiguration is wanted, others go into files of --config-dir", file)
	}
	d.warnings = duplicates(file, data)
	// Null removes in a drop-in and means "not set" elsewhere; not every type
	// decodes it.
	withoutNull := map[string]any{}
	mergePatch(withoutNull, d.tree)
	pure, err := yaml.Marshal(withoutNull)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	_, gvk, err := strictDecoder().Decode(pure, nil, nil)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	switch {
	case isStrict:
		for _, e := range strict.Errors() {
			d.warnings = append(d.warnings, fmt.Sprintf("%s: %v; it is ignored%s", file, e, meant(e)))
		}
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s: apiVersion is %q and kind is %q; it must begin with apiVersion: %s and kind: KubeletConfiguration",
			file, text(d.tree["apiVersion"]), text(d.tree["kind"]), kubeletconfig.SchemeGroupVersion)
	case err != nil:
		return nil, explainDecode(file, withoutNull, err)
	}
	if want := kubeletconfig.SchemeGroupVersion.WithKind("KubeletConfiguration"); gvk == nil || *gvk != want {
		return nil, fmt.Errorf("%s: is a %v; a %v is wanted", file, gvk, want)
	}
	return d, nil
}

// duplicates gives a warning for every key that stands twice in an object; the
// last one counts.
func duplicates(file string, data []byte) []string {
	var tree map[string]any
	err := yaml.UnmarshalStrict(data, &tree)
	if err == nil {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if strings.Contains(line, "already set in map") {
			out = append(out, fmt.Sprintf("%s: %s; the last one counts", file, strings.TrimSpace(line)))
		}
	}
	return out
}

// secondDocument is true when something stands behind the first document of a
// file, which the decoder would drop in silence. data has been decoded.
func secondDocument(data []byte) bool {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	full := 0
	for {
		doc, err := r.Read()
		if err != nil {
			return full > 1
		}
		var content any
		if err := yaml.Unmarshal(doc, &content); err != nil || content != nil {
			full++
		}
	}
}

// meant asks after the field that an unknown one may stand for.
func meant(unknown error) string {
	fe, ok := unknown.(kjson.FieldError) //nolint:errorlint // the strict errors are not wrapped
	if !ok {
		return ""
	}
	if name := plain.Meant(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), fe.FieldPath()); name != "" {
		return ": is " + name + " meant?"
	}
	return ""
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func strictDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := kubeletconfig.AddToScheme(scheme); err != nil {
		panic("config: registering the kubelet's types: " + err.Error()) // only a broken library can
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// explainDecode finds the fields that do not decode by trying each alone:
// decoders of values such as durations do not know where they are.
func explainDecode(file string, tree map[string]any, cause error) error {
	var errs []error
	for _, path := range presentFields(tree) {
		for part, value := range parts(getPath(tree, path)) {
			if err := decodeAlone(path, value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s%s: %s", file, path, part, whyNot(path, value, err)))
			}
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%s: %w", file, cause)
	}
	return errors.Join(errs...)
}

// parts gives the entries of a map one by one, each as a map of its own, and
// anything else as it is.
func parts(value any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		entries, ok := value.(map[string]any)
		if !ok {
			yield("", value)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if !yield("["+key+"]", map[string]any{key: entries[key]}) {
				return
			}
		}
	}
}

func decodeAlone(path string, value any) error {
	alone := map[string]any{}
	setPath(alone, path, value)
	_, err := decodeTree(alone)
	return err
}

// whyNot says what is wrong with a value that does not decode; a number without
// a unit that stands for a duration is a mistake of its own.
func whyNot(path string, value any, err error) string {
	switch value.(type) {
	case float64, int64:
		if decodeAlone(path, "90s") == nil && decodeAlone(path, "x") != nil {
			return "is a number, must be a duration with its unit, such as 90s"
		}
	}
	return plain.Decode(err, value)
}

// decodeTree is lenient about unknown fields, and case-sensitive.
func decodeTree(tree map[string]any) (*kubeletconfig.KubeletConfiguration, error) {
	data, err := yaml.Marshal(tree)
	if err != nil {
		return nil, err
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		return nil, err
	}
	kc := &kubeletconfig.KubeletConfiguration{}
	return kc, kjson.UnmarshalCaseSensitivePreserveInts(data, kc)
}

// dropIns lists the *.conf files below dir in the order of their paths.
func dropIns(dir string) (files []string, skipped []string, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
		case filepath.Ext(path) == ".conf":
			files = append(files, path)
		default:
			skipped = append(skipped, path)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the drop-in directory --config-dir: %w", err)
	}
	slices.Sort(skipped)
	return files, skipped, nil
}

// resolvePaths makes the fields that name files absolute, as the kubelet does.
func resolvePaths(tree map[string]any, dir string) {
	for path := range fieldSet(pathFields) {
		if s, ok := getPath(tree, path).(string); ok && s != "" && !filepath.IsAbs(s) {
			setPath(tree, path, filepath.Join(dir, s))
		}
	}
}
