package podstore_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

func record(uid string) pod.Record {
	return pod.Record{
		Version: pod.RecordVersion, UID: types.UID(uid), Incarnation: 7, Name: "web-n", Namespace: "default", Source: pod.SourceFile,
		StartTime: time.Unix(100, 0).UTC(), Restarts: map[string]uint32{"a": 2},
	}
}

func pathOf(root, uid string) string { return filepath.Join(root, "flowlet", "pods", uid+".json") }

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestRecordsOutliveTheAgent(t *testing.T) {
	root := t.TempDir()
	none, err := podstore.OpenRecords(root).Load()
	require.NoError(t, err)
	require.Empty(t, none, "a new root directory")

	r := podstore.OpenRecords(root)
	require.NoError(t, r.Save(t.Context(), record("u1")))
	require.NoError(t, r.Save(t.Context(), record("u2")))
	require.NoError(t, r.Delete(t.Context(), "u2"))
	require.NoError(t, r.Delete(t.Context(), "u2"), "gone already")
	info, err := os.Stat(pathOf(root, "u1"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "what containers said last is nobody else's")

	records, err := podstore.OpenRecords(root).Load()
	require.NoError(t, err)
	require.Equal(t, []pod.Record{record("u1")}, records)
}

func TestFileThatAKilledAgentWasWritingIsRemoved(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, podstore.OpenRecords(root).Save(t.Context(), record("u1")))
	dir := filepath.Dir(pathOf(root, "u1"))
	write(t, filepath.Join(dir, ".u2.json70576778490897605"), `{"version":1,"uid":"u`)
	write(t, filepath.Join(dir, ".u3.json.bak"), "not ours")
	records, err := podstore.OpenRecords(root).Load()
	require.NoError(t, err)
	require.Len(t, records, 1)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, ".u3.json.bak")}, left)
}

func TestBadStateFilesAreNamedAndLeftAsTheyAre(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, podstore.OpenRecords(root).Save(t.Context(), record("good")))
	bad := map[string]string{"half": `{"version":1,"uid":"ha`, "empty": "", "other": `{"version":1,"uid":"good"}`, "list": "[]"}
	for uid, text := range bad {
		write(t, pathOf(root, uid), text)
	}
	require.NoError(t, os.Mkdir(pathOf(root, "dir"), 0o750))
	write(t, filepath.Join(root, "flowlet", "pods", "notes.txt"), "not ours")

	records, err := podstore.OpenRecords(root).Load()
	require.Equal(t, []pod.Record{record("good")}, records)
	for uid, text := range bad {
		require.ErrorContains(t, err, pathOf(root, uid))
		data, rerr := os.ReadFile(pathOf(root, uid))
		require.NoError(t, rerr)
		require.Equal(t, text, string(data))
	}
	require.ErrorContains(t, err, `is of another pod, UID "good"`)
	require.NotContains(t, err.Error(), "notes.txt")
}

func TestFieldsOfOtherBuildsAreKept(t *testing.T) {
	root := t.TempDir()
	write(t, pathOf(root, "u1"), `{"version":9,"uid":"u1","name":"web-n","namespace":"default","finished":true,"later":{"x":[1]}}`)
	r := podstore.OpenRecords(root)
	records, err := r.Load()
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.NoError(t, r.Save(t.Context(), record("u1")))

	data, err := os.ReadFile(pathOf(root, "u1"))
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, map[string]any{"x": []any{1.0}}, got["later"])
	require.NotContains(t, got, "finished", "a field of ours that is no longer so is not kept")
	require.InDelta(t, 7, got["incarnation"], 0)

	require.NoError(t, r.Delete(t.Context(), "u1"))
	require.NoError(t, r.Save(t.Context(), record("u1")))
	data, err = os.ReadFile(pathOf(root, "u1"))
	require.NoError(t, err)
	require.NotContains(t, string(data), "later", "a new life of the UID begins without")
}

func TestSaveReplacesInOneStep(t *testing.T) {
	root := t.TempDir()
	r := podstore.OpenRecords(root)
	require.NoError(t, r.Save(t.Context(), record("u1")))
	old, err := os.Open(pathOf(root, "u1"))
	require.NoError(t, err)
	defer old.Close()
	changed := record("u1")
	changed.Finished = true
	require.NoError(t, r.Save(t.Context(), changed))
	var seen pod.Record
	require.NoError(t, json.NewDecoder(old).Decode(&seen))
	require.Equal(t, record("u1"), seen, "who reads meanwhile sees all of the old file")
	files, err := os.ReadDir(filepath.Dir(pathOf(root, "u1")))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left beside it")
}

func TestHealthNamesAPodThatCannotBeWritten(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "flowlet", "pods"), "in the way")
	r := podstore.OpenRecords(root)
	require.NoError(t, r.Health())
	err := r.Save(t.Context(), record("u1"))
	require.ErrorContains(t, err, "writing state file of pod default/web-n")
	require.ErrorContains(t, r.Health(), "cannot persist state of 1 pods, among them u1")

	require.NoError(t, os.Remove(filepath.Join(root, "flowlet", "pods")))
	require.NoError(t, r.Save(t.Context(), record("u1")))
	require.NoError(t, r.Health())
}
