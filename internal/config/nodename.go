package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// nodeName is the override or the host name, as the kubelet writes it.
func nodeName(override string) (string, error) {
	from, name := "--hostname-override", override
	if override == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("asking for the host name (--hostname-override gives one): %w", err)
		}
		from, name = "host name", host
	}
	clean := strings.ToLower(strings.TrimSpace(name))
	if errs := validation.IsDNS1123Subdomain(clean); len(errs) > 0 {
		return "", fmt.Errorf("%s %q is no node name: %s; --hostname-override gives another one", from, name, strings.Join(errs, "; "))
	}
	return clean, nil
}

// absolute resolves a path against the working directory; "" stays "".
func absolute(flag, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return abs, nil
}
