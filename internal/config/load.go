package config

import (
	"errors"
	"fmt"

	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// loaded is the kubelet's part of the configuration.
type loaded struct {
	kubelet  *kubeletconfig.KubeletConfiguration
	gates    featuregate.FeatureGate
	origins  map[string]string // field path → file or flag
	warnings []string
}

// loadKubelet merges files, drop-ins and flags. Defaults come between the
// files and the flags: a flag may set a zero that in a file means "default".
func loadKubelet(flags *Flags) (*loaded, error) {
	l := &loaded{origins: map[string]string{}}
	tree, err := l.readFiles(flags)
	if err != nil {
		return nil, err
	}
	kc, err := decodeTree(tree)
	if err != nil {
		return nil, explainDecode("merged configuration", tree, err)
	}
	for path := range l.origins {
		if isUnset(kc, path) {
			delete(l.origins, path)
		}
	}
	setDefaults(kc)
	if flags.ConfigFile != "" || flags.ConfigDir != "" {
		setDefaultEviction(kc)
	}
	if l.kubelet, err = l.applyFlags(kc, flags); err != nil {
		return nil, err
	}
	if err := l.setGates(); err != nil {
		return nil, err
	}
	return l, l.validate()
}

func (l *loaded) readFiles(flags *Flags) (map[string]any, error) {
	files, skipped, err := dropIns(flags.ConfigDir)
	if err != nil {
		return nil, err
	}
	for _, s := range skipped {
		l.warnings = append(l.warnings, s+": is not a .conf file and is ignored")
	}
	if flags.ConfigFile != "" {
		files = append([]string{flags.ConfigFile}, files...)
	}
	tree, errs := map[string]any{}, []error(nil)
	for _, file := range files {
		d, err := readDocument(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.warnings = append(l.warnings, d.warnings...)
		for _, path := range presentFields(d.tree) {
			l.origins[path] = d.file
		}
		mergePatch(tree, d.tree)
	}
	return tree, errors.Join(errs...)
}

// applyFlags lays the flags that were given over the defaulted configuration.
func (l *loaded) applyFlags(kc *kubeletconfig.KubeletConfiguration, flags *Flags) (*kubeletconfig.KubeletConfiguration, error) {
	given := flags.given()
	if len(given) == 0 {
		return kc, nil
	}
	data, err := yaml.Marshal(kc)
	if err != nil {
		return nil, fmt.Errorf("applying flags: %w", err)
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("applying flags: %w", err)
	}
	for _, f := range given {
		value := f.value.json
		if f.path == "featureGates" { // the only field that is merged with the file's
			value = mergedGates(kc.FeatureGates, value)
		}
		setPath(tree, f.path, value)
		l.origins[f.path] = "--" + f.name
	}
	out, err := decodeTree(tree)
	if err != nil {
		return nil, explainDecode("flags", tree, err)
	}
	return out, nil
}

func mergedGates(file map[string]bool, flag any) map[string]any {
	out := map[string]any{}
	for name, on := range file {
		out[name] = on
	}
	if m, ok := flag.(map[string]any); ok {
		mergePatch(out, m)
	}
	return out
}
