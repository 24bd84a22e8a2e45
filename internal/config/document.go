package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
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
		return nil, fmt.Errorf("%s: %w", file, err)
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
			d.warnings = append(d.warnings, fmt.Sprintf("%s: %v; it is ignored", file, e))
		}
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s: %w; it must begin with apiVersion: %s and kind: KubeletConfiguration", file, err, kubeletconfig.SchemeGroupVersion)
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
		alone := map[string]any{}
		setPath(alone, path, getPath(tree, path))
		if _, err := decodeTree(alone); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", file, path, err))
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%s: %w", file, cause)
	}
	return errors.Join(errs...)
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
