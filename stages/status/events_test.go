package status_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/status"
)

func TestEventsAreCountedNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e status.Events
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		first := time.Now()
		e.Event(p, "spec.containers{web}", "Normal", "Pulling", "pulling")
		e.Event(p, "", "Warning", "FailedMount", "no")
		time.Sleep(time.Minute)
		e.Event(p, "spec.containers{web}", "Normal", "Pulling", "pulling")
		e.Event(nil, "", "Normal", "Nobody", "")
		require.Equal(t, []pod.Event{
			{Type: "Warning", Reason: "FailedMount", Message: "no", First: first, Last: first, Count: 1},
			{Type: "Normal", Reason: "Pulling", Message: "pulling", FieldPath: "spec.containers{web}", First: first, Last: time.Now(), Count: 2},
		}, e.Of("u"))
		e.Forget("u")
		require.Empty(t, e.Of("u"))
	})
}

func TestEventsOfAPodAreBounded(t *testing.T) {
	var e status.Events
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	for i := range 120 {
		e.Event(p, "", "Normal", "R", fmt.Sprint(i))
		e.Event(p, "", "Normal", "Kept", "it repeats")
	}
	got := e.Of("u")
	require.Len(t, got, 50)
	require.Equal(t, 120, got[0].Count, "what repeats stays")
	require.Equal(t, "119", got[len(got)-1].Message)
}
