// Package cri is a thin client of the Kubernetes Container Runtime Interface.
//
// It adds to the generated stubs only what every caller would otherwise have to repeat:
//
//   - a deadline for every call (Timeouts), which a shorter one of the caller overrides;
//   - errors that name the call and the object once ("RunPodSandbox default/web: cause") and that can be asked
//     what they mean (Classify, IsNotFound, IsUncertain …) instead of being matched by text;
//   - idempotence where the interface promises it: stopping or removing what is gone succeeds;
//   - version skew: a method that the runtime lacks is a fact (ErrUnsupported), and lists use the streaming calls
//     where there are any, so that a node with 20,000 containers stays below the message limit.
//
// The package keeps no state about pods, retries nothing and starts no goroutine. It knows neither traces nor
// metrics: an Observer sees every call.
package cri
