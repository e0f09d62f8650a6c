// Command grouprecorder asks kube-scheduler what one attempt at a pod group comes to.
//
// It reads cases as JSON lines on standard input: feature gates, nodes, placed pods, one PodGroup and
// its pods. It writes them back with "answers": every distinct outcome of a number of attempts, because
// kube-scheduler tries placements in a random order and draws among placements of equal score. Each
// attempt is the group cycle of a scheduler made by scheduler.New, on the objects of the case in a fake
// clientset, with the cycles that follow it without a backoff.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

const namespace = "default"

// cyclesMax bounds the cycles of one attempt.
const cyclesMax = 6

var attempts = flag.Int("attempts", 8, "attempts at each case")

// groupCase is one line of input.
type groupCase struct {
	ID      string                       `json:"id"`
	Gates   map[string]bool              `json:"gates"`
	Nodes   []*v1.Node                   `json:"nodes"`
	Pods    []*v1.Pod                    `json:"pods"`
	Group   *schedulingv1beta1.PodGroup  `json:"group"`
	Members []*v1.Pod                    `json:"members"`
	Slices  []*resourceapi.ResourceSlice `json:"slices,omitempty"`
	Classes []*resourceapi.DeviceClass   `json:"classes,omitempty"`
	Claims  []*resourceapi.ResourceClaim `json:"claims,omitempty"`
	Answers []outcome                    `json:"answers"`
}

// outcome is what one attempt came to.
type outcome struct {
	Group   condition         `json:"group"`
	Members map[string]member `json:"members"`
	Victims []string          `json:"victims,omitempty"`
	Claims  map[string]claim  `json:"claims,omitempty"`
}

// claim is what a claim has after the attempt.
type claim struct {
	Devices []string `json:"devices,omitempty"`
	Users   []string `json:"users,omitempty"`
}

type condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type member struct {
	Node      string `json:"node,omitempty"`
	Nominated string `json:"nominated,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// world is a scheduler with the objects of one case.
type world struct {
	client *fake.Clientset
	sched  *scheduler.Scheduler
	// version is the last resource version.
	version atomic.Int64
	mu      sync.Mutex
	// deleted has the names of the pods that were deleted.
	deleted map[string]bool
}

func main() {
	flag.Parse()
	klog.SetLogger(klog.Logger{}.V(100))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var raw map[string]json.RawMessage
		check(json.Unmarshal(lines.Bytes(), &raw))
		found := map[string]outcome{}
		for range *attempts {
			var c groupCase
			check(json.Unmarshal(lines.Bytes(), &c))
			one := attempt(&c)
			text, err := json.Marshal(one)
			check(err)
			found[string(text)] = one
		}
		keys := []string{}
		for text := range found {
			keys = append(keys, text)
		}
		sort.Strings(keys)
		answers := []outcome{}
		for _, text := range keys {
			answers = append(answers, found[text])
		}
		text, err := json.Marshal(answers)
		check(err)
		raw["answers"] = text
		check(out.Encode(raw))
	}
	check(lines.Err())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// isActive reports whether members are to be tried again at once.
func (w *world) isActive() bool {
	_, summary := w.sched.SchedulingQueue.PendingPods()
	return !strings.Contains(summary, "activeQ:0")
}

// attempt makes one attempt at the group of a case, and further ones as long as no backoff ends them.
func attempt(c *groupCase) outcome {
	// Batching takes one of several nodes of equal score without a new look at them.
	gates := map[string]bool{"SchedulerAsyncAPICalls": false, "OpportunisticBatching": false}
	for name, value := range c.Gates {
		gates[name] = value
	}
	check(utilfeature.DefaultMutableFeatureGate.SetFromMap(gates))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := newWorld(ctx, c)
	defer w.sched.SchedulingQueue.Close()
	for _, pod := range c.Members {
		w.create(ctx, pod)
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(30 * time.Millisecond)
	for range cyclesMax {
		w.sched.ScheduleOne(ctx)
		w.settle(ctx, c)
		if !w.isActive() {
			break
		}
	}
	return w.outcome(ctx, c)
}

func newWorld(ctx context.Context, c *groupCase) *world {
	w := &world{deleted: map[string]bool{}}
	objects := []runtime.Object{&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, node := range c.Nodes {
		objects = append(objects, node)
	}
	for _, pod := range c.Pods {
		complete(pod)
		objects = append(objects, pod)
	}
	c.Group.Namespace = namespace
	c.Group.UID = types.UID(c.Group.Name)
	objects = append(objects, c.Group)
	for _, each := range c.Slices {
		objects = append(objects, each)
	}
	for _, each := range c.Classes {
		objects = append(objects, each)
	}
	for _, each := range c.Claims {
		each.Namespace, each.UID, each.ResourceVersion = namespace, types.UID(each.Name), w.nextVersion()
		objects = append(objects, each)
	}
	w.client = fake.NewSimpleClientset(objects...)
	w.client.PrependReactor("create", "pods/binding", w.bind)
	w.client.PrependReactor("patch", "pods", w.patch(&v1.Pod{}))
	w.client.PrependReactor("patch", "podgroups", w.patch(&schedulingv1beta1.PodGroup{}))
	w.client.PrependReactor("delete", "pods", w.noteDeletion)
	w.client.PrependReactor("update", "resourceclaims", w.updateClaim)
	w.client.PrependReactor("patch", "resourceclaims", w.patch(&resourceapi.ResourceClaim{}))
	cfg, err := latest.Default()
	check(err)
	informers := scheduler.NewInformerFactory(w.client, 0, nil)
	w.sched, err = scheduler.New(ctx, w.client, informers, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithComponentConfigVersion("kubescheduler.config.k8s.io/v1"),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithParallelism(1),
	)
	check(err)
	informers.StartWithContext(ctx)
	informers.WaitForCacheSyncWithContext(ctx)
	check(w.sched.WaitForHandlersSync(ctx))
	return w
}

func complete(pod *v1.Pod) {
	pod.Namespace = namespace
	pod.UID = types.UID(pod.Name)
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
}

func (w *world) create(ctx context.Context, pod *v1.Pod) {
	complete(pod)
	_, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	check(err)
}

// bind writes the node of a binding into the pod, as the API server does.
func (w *world) bind(action ktesting.Action) (bool, runtime.Object, error) {
	binding := action.(ktesting.CreateAction).GetObject().(*v1.Binding)
	resource := v1.SchemeGroupVersion.WithResource("pods")
	object, err := w.client.Tracker().Get(resource, namespace, binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*v1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	pod.ResourceVersion = w.nextVersion()
	return true, binding, w.client.Tracker().Update(resource, pod, namespace)
}

// patch makes a reactor that patches an object of a kind and gives it a new resource version, as the
// API server does. The scheduler ignores changes that leave the resource version as it is.
func (w *world) patch(kind metav1.Object) ktesting.ReactionFunc {
	return func(action ktesting.Action) (bool, runtime.Object, error) {
		asked := action.(ktesting.PatchAction)
		object, err := w.client.Tracker().Get(asked.GetResource(), namespace, asked.GetName())
		if err != nil {
			return true, nil, err
		}
		before, err := json.Marshal(object)
		check(err)
		after, err := strategicpatch.StrategicMergePatch(before, asked.GetPatch(), kind)
		check(err)
		changed := reflect.New(reflect.TypeOf(kind).Elem()).Interface()
		check(json.Unmarshal(after, changed))
		changed.(metav1.Object).SetResourceVersion(w.nextVersion())
		result := changed.(runtime.Object)
		return true, result, w.client.Tracker().Update(asked.GetResource(), result, namespace)
	}
}

// updateClaim refuses a change of an older version, as the API server does.
func (w *world) updateClaim(action ktesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := action.(ktesting.UpdateAction).GetObject().(*resourceapi.ResourceClaim).DeepCopy()
	object, err := w.client.Tracker().Get(action.GetResource(), namespace, changed.Name)
	if err != nil {
		return true, nil, err
	}
	if object.(*resourceapi.ResourceClaim).ResourceVersion != changed.ResourceVersion {
		resource := action.GetResource().GroupResource()
		return true, nil, apierrors.NewConflict(resource, changed.Name, errors.New("another version"))
	}
	changed.ResourceVersion = w.nextVersion()
	return true, changed, w.client.Tracker().Update(action.GetResource(), changed, namespace)
}

// claimsOf has the devices and users of all claims.
func (w *world) claimsOf(ctx context.Context, c *groupCase) map[string]claim {
	result := map[string]claim{}
	for _, own := range c.Claims {
		now, err := w.client.ResourceV1().ResourceClaims(namespace).Get(ctx, own.Name, metav1.GetOptions{})
		check(err)
		var one claim
		if now.Status.Allocation != nil {
			for _, each := range now.Status.Allocation.Devices.Results {
				one.Devices = append(one.Devices, each.Pool+"/"+each.Device)
			}
		}
		for _, each := range now.Status.ReservedFor {
			one.Users = append(one.Users, each.Resource+"/"+each.Name)
		}
		sort.Strings(one.Users)
		result[own.Name] = one
	}
	return result
}

func (w *world) nextVersion() string {
	return strconv.FormatInt(w.version.Add(1), 10)
}

func (w *world) noteDeletion(action ktesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted[action.(ktesting.DeleteAction).GetName()] = true
	return true, nil, nil
}

// memberOf is the state of a member: its node, or why it has none.
func memberOf(pod *v1.Pod) member {
	if pod.Spec.NodeName != "" {
		return member{Node: pod.Spec.NodeName}
	}
	one := member{Nominated: pod.Status.NominatedNodeName}
	for _, each := range pod.Status.Conditions {
		if each.Type == v1.PodScheduled {
			one.Reason, one.Message = each.Reason, each.Message
		}
	}
	return one
}

// settle waits until the attempt has written all that it writes.
func (w *world) settle(ctx context.Context, c *groupCase) {
	for range 500 {
		time.Sleep(10 * time.Millisecond)
		if w.isSettled(w.outcome(ctx, c)) {
			break
		}
	}
	// Victims are deleted in the background.
	time.Sleep(40 * time.Millisecond)
}

func (w *world) isSettled(now outcome) bool {
	for _, one := range now.Members {
		if one.Node == "" && one.Reason == "" {
			return false
		}
	}
	return now.Group.Status != ""
}

func (w *world) outcome(ctx context.Context, c *groupCase) outcome {
	result := outcome{Members: map[string]member{}, Claims: w.claimsOf(ctx, c)}
	group, err := w.client.SchedulingV1beta1().PodGroups(namespace).Get(ctx, c.Group.Name, metav1.GetOptions{})
	check(err)
	for _, each := range group.Status.Conditions {
		result.Group = condition{string(each.Status), each.Reason, each.Message}
	}
	for _, own := range c.Members {
		pod, err := w.client.CoreV1().Pods(namespace).Get(ctx, own.Name, metav1.GetOptions{})
		check(err)
		result.Members[own.Name] = memberOf(pod)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.deleted {
		result.Victims = append(result.Victims, name)
	}
	sort.Strings(result.Victims)
	return result
}
