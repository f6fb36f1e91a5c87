#include "device/process.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <optional>
#include <random>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/cpu_pause.h"
#include "base/error.h"
#include "base/explain.h"
#include "base/lock_guard.h"
#include "cluster/runtime_dir.h"
#include "device/context.h"
#include "device/idle_watch.h"
#include "device/queue_pair.h"
#include "trace/begin.h"

namespace ringbolt::device {
namespace {

uint32_t random_index() {
  std::random_device device;
  return device() % kMaxQueuePairs;
}

}  // namespace

Process::Process(std::shared_ptr<Fabric> fabric)
    : fabric_(std::move(fabric)),
      rendezvous_(open_rendezvous()),
      service_(*rendezvous_, wakes_.service(), *this),
      qp_numbers_(rendezvous_->slot(), random_index()) {
  fabric_->control.refresh();  // from here on we are told of changes; earlier ones went to others
  management_ = std::make_unique<Management>(fabric_, rendezvous_->slot(), [this](uint32_t slot) {
    static_cast<void>(rendezvous_->peer_at(slot));  // whoever is connected hears of the other's end
  });
  if (peer_notes_ != nullptr) {
    idle_watch_ = std::make_unique<IdleWatch>(*this);
  }
  // Last: it needs all of this, and must not run when a constructor throws.
  service_.start(fabric_->verb_faults.has(fault::Subject::state));
}

/// Makes the tables first, whose descriptors it hands out to peers. Needs the members before rendezvous_.
std::unique_ptr<link::Rendezvous> Process::open_rendezvous() {
  const auto table = regions_.create();
  if (!table) {
    throw base::Error(table.error().value, "make the table of memory regions", "ringbolt",
                      "free memory or raise the limit of open files (ulimit -n)");
  }
  const auto wakes = wakes_.create();
  if (!wakes) {
    throw base::Error(wakes.error().value, "make the table of completion queues", "ringbolt",
                      "free memory or raise the limit of open files (ulimit -n)");
  }
  if (base::is_explaining()) {
    peer_notes_ = PeerNotes::open(cluster::RuntimeDir::from_environment().root());
  }
  trace::begin(std::filesystem::path(fabric_->slots_directory).parent_path().string(), fabric_->cluster);
  return link::Rendezvous::open({fabric_->slots_directory, *table, *wakes, link::kSlotCount}, *this);
}

Process::~Process() {
  if (is_abandoned()) {
    // They are not deleted: their destructors would join threads, and remove files, of the parent's.
    static_cast<void>(rendezvous_.release());  // the parent's, and so are the thread and the file of the next two
    static_cast<void>(idle_watch_.release());
    static_cast<void>(peer_notes_.release());
    return;
  }
  service_.stop();
  leave();
}

void Process::free_buffer(void* address) {
  if (is_abandoned()) {
    return;  // in a forked child: the parent's
  }
  remotes_.free(address);
}

base::Result<uint32_t> Process::add(const std::shared_ptr<QueuePair>& qp) {
  const std::optional<uint32_t> qpn = qp_numbers_.take();
  if (!qpn) {
    return base::fail(ENOMEM);
  }
  qp->assign_qpn(*qpn);
  try {
    queue_pairs_.add(*qpn, qp);
  } catch (const std::bad_alloc&) {
    qp_numbers_.give_back(*qpn);
    throw;
  }
  packet_targets_.put(*qpn, *qp);
  return *qpn;
}

void Process::remove(const QueuePair& qp) {
  const uint32_t qpn = qp.qpn();
  packet_targets_.remove(qpn);  // it waits; the number is given to nobody else meanwhile
  queue_pairs_.remove(qpn);
  qp_numbers_.give_back(qpn);
}

void Process::add(const std::shared_ptr<CompletionQueue>& cq) { completion_queues_.add(cq->wake_name().index, cq); }

void Process::remove(const CompletionQueue& cq) { completion_queues_.remove(cq.wake_name().index); }

void Process::add(Context* context) {
  const base::LockGuard guard(contexts_mutex_);
  contexts_.push_back(context);
}

void Process::remove(Context* context) {
  const base::LockGuard guard(contexts_mutex_);
  std::erase(contexts_, context);
}

std::shared_ptr<link::RemoteProcess> Process::owner_of(uint32_t qpn) {
  const auto peer = rendezvous_->peer_at(qpn >> kQpnIndexBits);
  return peer == nullptr ? nullptr : remotes_.of(peer);
}

void Process::wait_for_accesses(uint32_t key) {
  base::heavy_fence();
  const uint64_t deadline = base::now_ns() + kAccessDrainNs;
  each_queue_pair([&](QueuePair& qp) {
    while (qp.lanes().is_accessed(key) && base::now_ns() < deadline) {
      base::cpu_pause();
    }
  });
}

void Process::wait_for_own_copies(bool is_wrapped) {
  if (is_wrapped || open_network_.load(std::memory_order_acquire) != nullptr) {
    each_queue_pair([](QueuePair& qp) { qp.wait_for_own_copies(); });
  }
}

void Process::on_poke() {
  fabric_->control.refresh();
  fabric_->verb_faults.look();
  look_at_ports();
}

void Process::look_at_ports(bool addresses_changed) {
  {
    const base::LockGuard guard(contexts_mutex_);
    for (Context* context : contexts_) {
      context->look_at_port(addresses_changed);
    }
  }
  each_queue_pair([](QueuePair& qp) { qp.look_at_faults(); });
}

void Process::look_at_addresses() {
  look_at_ports(true);
  management_->look_at_addresses();
}

Network& Process::open_network() {
  const base::LockGuard guard(network_opening_);
  if (network_ == nullptr) {
    network_ = std::make_unique<Network>(*this, fabric_->slots_directory, rendezvous_->slot());
    open_network_.store(network_.get(), std::memory_order_release);
    // The service thread may be told of a packet from here on.
    if (!rendezvous_->watch(network_->descriptor())) {
      const int error = errno;
      open_network_.store(nullptr, std::memory_order_relaxed);
      network_.reset();
      throw base::Error(error, "epoll_ctl", "network", "look at /proc/sys/fs/epoll/max_user_watches");
    }
    management_->set_network_sender([this](const Port& port, const Mad& mad) { return network().send(port, mad); });
    suspect_deaths();  // of before we came: where one was killed that was the last
  }
  return *network_;
}

void Process::leave() {
  std::call_once(left_, [this] {
    idle_watch_.reset();
    // One for all queue pairs together.
    const uint64_t deadline_ns = base::now_ns() + kLeastTimeoutNs;
    each_queue_pair([&](QueuePair& qp) {
      qp.settle_told("the program ended", deadline_ns);
      qp.send_rest(deadline_ns);
    });
    try {
      service_.tell_remarks();
    } catch (const std::bad_alloc&) {
      // Remarks are a courtesy, and nothing may leave call_once() by an exception.
    }
    trace::end();
    service_.end();  // after the rendezvous has left there is nothing to wait for
    each_queue_pair([](QueuePair& qp) { qp.lanes().tell_peers(); });
    if (Network* network = open_network_.load(std::memory_order_acquire)) {
      rendezvous_->unwatch(network->descriptor());
      network->leave();
    }
    management_->leave();
    rendezvous_->leave();
    if (peer_notes_ != nullptr) {
      peer_notes_->leave();
    }
  });
}

void Process::abandon_after_fork() {
  is_abandoned_.store(true);
  service_.abandon_after_fork();
  wakes_.abandon_after_fork();
  management_->abandon_after_fork();
  if (Network* network = open_network_.load(std::memory_order_acquire)) {
    network->abandon_after_fork();
  }
  rendezvous_->abandon_after_fork();
}

}  // namespace ringbolt::device
