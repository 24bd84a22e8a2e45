package volume

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

const (
	nfsPlugin = "kubernetes.io/nfs"
	nfsType   = "nfs"
)

// ensureNFS mounts the export, unless something is mounted there. The server is
// asked for nothing else: neither an owner nor a mode is changed on it.
func (s *Volumes) ensureNFS(p *corev1.Pod, v *corev1.Volume) error {
	dir, err := s.volume(p.UID, nfsPlugin, v.Name)
	if err != nil {
		return err
	}
	if on, err := mountAt(dir, s.Mounter); err != nil || on != nil {
		return err
	}
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return err
	}
	var options []string
	if v.NFS.ReadOnly {
		options = append(options, "ro")
	}
	source := exportOf(v.NFS)
	if err := s.Mounter.Mount(source, dir, nfsType, options); err != nil {
		return errors.Join(fmt.Errorf("nfs export %s: %w", source, err), s.dropMountPoint(dir))
	}
	return nil
}

// exportOf names the export as mount(8) wants it: an IPv6 address in brackets.
func exportOf(v *corev1.NFSVolumeSource) string {
	server := v.Server
	if addr, err := netip.ParseAddr(server); err == nil && addr.Is6() {
		server = "[" + server + "]"
	}
	return server + ":" + v.Path
}

// nfsPath returns where the export is mounted. It does not touch the mount: the
// server may hang.
func (s *Volumes) nfsPath(p *corev1.Pod, name string) (string, error) {
	dir, err := s.volume(p.UID, nfsPlugin, name)
	if err != nil {
		return "", err
	}
	on, err := mountAt(dir, s.Mounter)
	if err == nil && on == nil {
		err = errNotSetUp
	}
	return dir, err
}

// dropMountPoint removes the directory that a server's file system was or was
// to be mounted at. What it holds without a mount is nobody's volume, and stays.
func (s *Volumes) dropMountPoint(dir string) error {
	if on, err := mountAt(dir, s.Mounter); err != nil || on != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mount point %s: %w", filepath.Base(dir), err)
	}
	return nil
}
