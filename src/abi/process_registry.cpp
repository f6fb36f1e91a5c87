#include "abi/process_registry.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "abi/objects.h"
#include "base/c_border.h"
#include "base/mutex.h"
#include "device/work_request.h"

namespace ringbolt::abi {
namespace {

/// All that outlives single calls at the C border. Never destroyed: programs call us from their own destructors.
struct Registry {
  base::Mutex mutex;
  std::map<std::string, std::weak_ptr<device::Process>> processes RINGBOLT_GUARDED_BY(mutex);  // by slots directory
  std::vector<Context*> contexts RINGBOLT_GUARDED_BY(mutex);
};

Registry& registry();
void before_fork() RINGBOLT_ACQUIRE(registry().mutex);
void in_parent() RINGBOLT_RELEASE(registry().mutex);
void in_child() RINGBOLT_RELEASE(registry().mutex);

Registry& registry() {
  static Registry* instance = [] {
    // At the first use, so before any device is open; there is no way to take it back.
    pthread_atfork(before_fork, in_parent, in_child);
    return new Registry;
  }();
  return *instance;
}

int dead_post_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  device::name_refused(wr, bad);
  return ENODEV;
}
int dead_post_receive(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  device::name_refused(wr, bad);
  return ENODEV;
}
int dead_post_srq_receive(ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  device::name_refused(wr, bad);
  return ENODEV;
}
/// As ibv_poll_cq(3) says it of a failure.
int dead_poll(ibv_cq*, int, ibv_wc*) noexcept { return -1; }
int dead_notify(ibv_cq*, int) noexcept { return ENODEV; }

/// So the child finds the lists whole, whatever other threads were about.
void before_fork() { registry().mutex.lock(); }
void in_parent() { registry().mutex.unlock(); }

/// The shared memory, slots and peers are the parent's. What the child inherited refuses to work; it may open anew.
void in_child() {
  for (Context* context : registry().contexts) {
    ibv_context_ops& ops = context->c()->ops;
    base::put(ops.post_send, base::Guarded(dead_post_send));
    base::put(ops.post_recv, base::Guarded(dead_post_receive));
    base::put(ops.post_srq_recv, base::Guarded(dead_post_srq_receive));
    base::put(ops.poll_cq, base::Guarded(dead_poll));
    base::put(ops.req_notify_cq, base::Guarded(dead_notify));
  }
  for (const auto& [directory, weak] : registry().processes) {
    if (const auto process = weak.lock()) {
      process->abandon_after_fork();
    }
  }
  registry().contexts.clear();
  registry().processes.clear();
  registry().mutex.unlock();
}

}  // namespace

std::shared_ptr<device::Process> process_for(const std::shared_ptr<device::Fabric>& fabric) {
  Registry& all = registry();
  const base::LockGuard guard(all.mutex);
  auto& known = all.processes[fabric->slots_directory];
  auto process = known.lock();
  if (process == nullptr) {
    process = std::make_shared<device::Process>(fabric);
    known = process;
  }
  return process;
}

void remember(Context* context) {
  Registry& all = registry();
  const base::LockGuard guard(all.mutex);
  all.contexts.push_back(context);
}

void forget(Context* context) {
  Registry& all = registry();
  const base::LockGuard guard(all.mutex);
  std::erase(all.contexts, context);
}

namespace {

/// The program exits with devices open: its peers learn that this was meant, and what we received.
__attribute__((destructor)) void at_exit() try {
  Registry& all = registry();
  std::vector<std::shared_ptr<device::Process>> alive;
  {
    const base::LockGuard guard(all.mutex);
    for (const auto& [directory, weak] : all.processes) {
      if (auto process = weak.lock()) {
        alive.push_back(std::move(process));
      }
    }
  }
  // Without the lock: leaving talks to peers.
  for (const auto& process : alive) {
    process->leave();
  }
} catch (...) {
  base::caught_nothing();
}

}  // namespace
}  // namespace ringbolt::abi
