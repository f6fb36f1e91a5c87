#include "device/management.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "device/gids.h"
#include "device/limits.h"
#include "link/rendezvous.h"
#include "link/udp_socket.h"
#include "wire/bytes.h"
#include "wire/lifeline.h"

namespace ringbolt::device {
namespace {

// The slot of a process stands in the upper bits of the communication ids that it gives out.
constexpr unsigned kIdSlotShift = 22;
// What a full socket (net.unix.max_dgram_qlen) has to wait is kept so long, and so much of it. The connection manager
// repeats what got lost.
constexpr uint64_t kUnsentPatienceNs = 2'000'000'000;
constexpr size_t kMaxUnsent = 8192;
constexpr size_t kMaxHeld = 1024;
// A request for a service whose listener has just gone is tried again after this.
constexpr uint64_t kHeldPauseNs = 5'000'000;
constexpr size_t kMaxNotices = 65536;

/// The receiver's communication id: whose message it is. 0 for a REJ that names none.
struct RemoteId {
  uint32_t operator()(const wire::CmReq&) const { return 0; }
  uint32_t operator()(const wire::CmSidrReq&) const { return 0; }
  uint32_t operator()(const wire::CmSidrRep& message) const { return message.request_id; }
  template <class Message>
  uint32_t operator()(const Message& message) const {
    return message.remote_id;
  }
};

/// Where a request wants to go: as its IP header says, else as the IP header that carried it.
wire::Address requested_address(const Mad& mad, std::span<const std::byte, wire::kCmIpHeaderBytes> header) {
  const auto parsed = wire::parse_cm_ip_header(header);
  return parsed ? parsed->destination : mad.destination;
}

/// It makes a connection: from here on the end of the other process matters.
bool begins_connection(const Mad& mad) {
  const uint16_t attribute = wire::get_be<uint16_t>(mad.bytes, 16);
  return attribute == wire::kCmReq || attribute == wire::kCmRep;
}

/// Without the holes of the tables: two hosts that share one of those are not the same.
std::vector<wire::Address> gids_of_node() {
  std::vector<wire::Address> gids;
  for (const auto& port : list_ports()) {
    std::ranges::transform(port->addresses()->shown, std::back_inserter(gids), address_of);
  }
  std::erase(gids, wire::Address{});
  return gids;
}

}  // namespace

Management::Management(std::shared_ptr<Fabric> fabric, uint32_t slot, Watcher watch)
    : fabric_(std::move(fabric)),
      slot_(slot),
      watch_(std::move(watch)),
      services_(fabric_->slots_directory, slot),
      record_(fabric_->slots_directory, slot, link::network_namespace()),
      orphans_(fabric_->slots_directory, link::network_namespace(),
               [this](const RecordEntry& from, wire::MadIn bytes) { return send_for_the_dead(from, bytes); }) {}

void Management::set_network_sender(NetworkSender sender) {
  const base::LockGuard guard(mutex_);
  network_ = std::move(sender);
}

void Management::open() {
  const base::LockGuard guard(mutex_);
  if (is_open()) {
    return;
  }
  auto socket = link::MadSocket::open(fabric_->slots_directory, slot_, true);
  base::UniqueFd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::UniqueFd poller(epoll_create1(EPOLL_CLOEXEC));
  if (!bell.is_open() || !poller.is_open()) {
    throw base::Error(errno, "open management", fabric_->slots_directory, "raise the limit of open files (ulimit -n)");
  }
  for (const int fd : {socket->descriptor(), bell.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw base::Error(errno, "epoll_ctl", "management");
    }
  }
  services_.set_gids(gids_of_node());
  socket_ = std::move(socket);
  bell_ = std::move(bell);
  poller_ = std::move(poller);
  is_open_.store(true, std::memory_order_release);
}

void Management::look_at_addresses() try {
  if (is_open()) {
    services_.set_gids(gids_of_node());
  }
} catch (const std::exception&) {
  // What can't be read just now is no evidence: the book stays as it was.
}

/// Shared, so that it can be used without the lock.
std::shared_ptr<link::MadSocket> Management::socket() {
  const base::LockGuard guard(mutex_);
  if (socket_ == nullptr) {
    try {
      socket_ = link::MadSocket::open(fabric_->slots_directory, slot_, false);
    } catch (const base::Error&) {
      return nullptr;  // out of descriptors: the datagram is lost, as datagrams may be
    }
  }
  return socket_;
}

/// The bell makes the descriptor readable; it is read when no notice is left.
void Management::push(Notice notice) {
  const base::LockGuard guard(mutex_);
  if (!is_open() || notices_.size() >= kMaxNotices) {
    return;
  }
  notices_.push_back(std::move(notice));
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof one);
}

bool Management::receive(Notice& notice) {
  if (!is_open()) {
    return false;
  }
  send_unsent();
  // The socket first: what a process sent before it ended comes before the news of its end.
  link::MadFrame frame;
  if (socket()->receive(frame)) {
    notice.kind = Notice::Kind::mad;
    notice.peer_slot = frame.is_from_network ? Notice::kNoSlot : frame.sender_slot;
    notice.mad = {frame.source, frame.destination, frame.flow_label, frame.traffic_class, 0, frame.bytes};
    if (begins_connection(notice.mad) && notice.peer_slot < link::kSlotCount && notice.peer_slot != slot_) {
      watch_(notice.peer_slot);
    }
    return true;
  }
  const base::LockGuard guard(mutex_);
  if (notices_.empty()) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(bell_.get(), &count, sizeof count);
    return false;
  }
  notice = std::move(notices_.front());
  notices_.pop_front();
  return true;
}

int Management::send(const Port& port, const Mad& mad) {
  const ibv_gid target = gid_of(mad.destination);
  if (!port.reaches(target)) {
    return ENETUNREACH;
  }
  if (!port.is_remote(target)) {
    if (port.is_up() || port.owns(target)) {
      deliver(!port.is_on_network(), mad, false);
    }
    return 0;
  }
  NetworkSender network;
  {
    const base::LockGuard guard(mutex_);
    network = network_;
  }
  return network ? network(port, mad) : ENETUNREACH;
}

void Management::on_network_mad(const wire::Flow& flow, uint8_t traffic_class, wire::MadIn bytes) {
  Mad mad{flow.source, flow.destination, 0, traffic_class, 0, {}};
  std::ranges::copy(bytes, mad.bytes.begin());
  deliver(false, mad, true);
}

void Management::deliver(bool is_in_folder, const Mad& mad, bool is_from_network) {
  const auto message = wire::parse_cm(mad.bytes);
  if (const auto offer = wire::parse_lifeline_offer(mad.bytes); offer && is_from_network) {
    static_cast<void>(deliver_to_slot(offer->remote_id >> kIdSlotShift, mad, true));
    return;
  }
  // What is not the connection manager's is met with silence, as by a kernel.
  if (message && !try_to_deliver(is_in_folder, mad, *message, is_from_network)) {
    answer_for_nobody(mad, *message, is_from_network);
  }
}

bool Management::try_to_deliver(bool is_in_folder, const Mad& mad, const wire::CmMad& message, bool is_from_network) {
  // Hosts that share a folder are told apart by their GIDs; on a network the datagram is at the right host already.
  const bool is_shared_folder = is_in_folder && fabric_->control.is_open();
  const std::optional<wire::Address> host = is_shared_folder ? std::optional(mad.destination) : std::nullopt;
  const auto to_service = [&](uint64_t id, const auto& private_data) {
    const auto header = std::span<const std::byte>(private_data).template first<wire::kCmIpHeaderBytes>();
    const auto owners = services_.owners_of(id, requested_address(mad, header), host);
    return std::ranges::any_of(owners, [&](uint32_t slot) { return deliver_to_slot(slot, mad, is_from_network); }) ||
           hold(is_in_folder, mad, id, is_from_network);
  };
  if (const auto* request = std::get_if<wire::CmReq>(&message.message)) {
    return to_service(request->service_id, request->private_data);
  }
  if (const auto* lookup = std::get_if<wire::CmSidrReq>(&message.message)) {
    return to_service(lookup->service_id, lookup->private_data);
  }
  if (const uint32_t id = std::visit(RemoteId{}, message.message); id != 0) {
    return deliver_to_slot(id >> kIdSlotShift, mad, is_from_network);
  }
  deliver_to_all(mad, is_from_network);
  return true;
}

/// Without the port, which may be gone when it is delivered.
bool Management::hold(bool is_in_folder, const Mad& mad, uint64_t service_id, bool is_from_network) {
  const uint64_t now = base::now_ns();
  if (!is_open() || !services_.is_between_listeners(service_id, now)) {
    return false;
  }
  const base::LockGuard guard(mutex_);
  if (held_.size() >= kMaxHeld) {
    return false;
  }
  held_.push_back({is_in_folder, mad, is_from_network, now + kHeldPauseNs});
  unsent_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof one);
  return true;
}

void Management::deliver_held() {
  std::vector<Held> due;
  {
    const uint64_t now = base::now_ns();
    const base::LockGuard guard(mutex_);
    while (!held_.empty() && held_.front().next_ns <= now) {
      due.push_back(held_.front());
      held_.pop_front();
    }
    unsent_.fetch_sub(static_cast<uint32_t>(due.size()), std::memory_order_relaxed);
  }
  for (const Held& one : due) {
    deliver(one.is_in_folder, one.mad, one.is_from_network);
  }
}

bool Management::deliver_to_slot(uint32_t slot, const Mad& mad, bool is_from_network) {
  if (slot == slot_) {
    if (is_open()) {
      push({Notice::Kind::mad, is_from_network ? Notice::kNoSlot : slot_, mad});
    }
    return is_open();
  }
  const auto socket = this->socket();
  if (socket == nullptr) {
    return true;  // lost
  }
  if (!is_from_network && begins_connection(mad)) {
    watch_(slot);
  }
  const link::MadFrame frame{slot_,           mad.source, mad.destination, mad.flow_label, mad.traffic_class,
                             is_from_network, mad.bytes};
  const base::LockGuard guard(mutex_);
  const bool must_queue = std::ranges::any_of(unsent_queue_, [&](const Unsent& one) { return one.slot == slot; });
  const int error = must_queue ? EAGAIN : socket->send(slot, frame);
  if (error == EAGAIN && is_open() && unsent_queue_.size() < kMaxUnsent) {
    unsent_queue_.push_back({slot, frame, base::now_ns() + kUnsentPatienceNs});
    unsent_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof one);
  }
  return error == 0 || error == EAGAIN;
}

void Management::send_unsent() {
  if (unsent() == 0) {
    return;
  }
  deliver_held();
  const base::LockGuard guard(mutex_);
  std::vector<uint32_t> full;
  const uint64_t now = base::now_ns();
  // In order for each receiver: once one finds no room, those behind it for the same slot wait, too.
  const auto sent = std::erase_if(unsent_queue_, [&](const Unsent& one) RINGBOLT_REQUIRES(mutex_) {
    if (now > one.deadline_ns) {
      return true;
    }
    if (std::ranges::find(full, one.slot) != full.end()) {
      return false;
    }
    if (socket_->send(one.slot, one.frame) != EAGAIN) {
      return true;
    }
    full.push_back(one.slot);
    return false;
  });
  unsent_.fetch_sub(static_cast<uint32_t>(sent), std::memory_order_relaxed);
}

void Management::deliver_to_all(const Mad& mad, bool is_from_network) {
  const auto socket = this->socket();
  for (const uint32_t slot : socket == nullptr ? std::vector<uint32_t>{} : socket->slots()) {
    static_cast<void>(deliver_to_slot(slot, mad, is_from_network));
  }
}

void Management::answer_for_nobody(const Mad& mad, const wire::CmMad& message, bool is_from_network) {
  wire::CmMad answer{message.transaction_id, {}};
  if (const auto* request = std::get_if<wire::CmReq>(&message.message)) {
    wire::CmRej refusal;
    refusal.remote_id = request->local_id;
    refusal.reason = wire::kRejInvalidServiceId;
    answer.message = refusal;
  } else if (const auto* lookup = std::get_if<wire::CmSidrReq>(&message.message)) {
    wire::CmSidrRep refusal;
    refusal.request_id = lookup->request_id;
    refusal.status = wire::kSidrUnsupported;
    refusal.service_id = lookup->service_id;
    answer.message = refusal;
  } else if (const auto* end = std::get_if<wire::CmDreq>(&message.message)) {
    answer.message = wire::CmDrep{end->remote_id, end->local_id, {}};
  } else {
    if (const auto* agreed = std::get_if<wire::CmDrep>(&message.message)) {
      orphans_.on_answer(*agreed);
    }
    return;
  }
  Mad back{mad.destination, mad.source, 0, mad.traffic_class, 64, {}};
  wire::emit(answer, back.bytes);
  if (!is_from_network) {
    push({Notice::Kind::mad, slot_, back});  // the question was ours
    return;
  }
  NetworkSender network;
  {
    const base::LockGuard guard(mutex_);
    network = network_;
  }
  for (const auto& own : network ? ports() : std::vector<std::shared_ptr<const Port>>{}) {
    if (own->owns(gid_of(back.source))) {
      static_cast<void>(network(*own, back));
      return;
    }
  }
}

const std::vector<std::shared_ptr<const Port>>& Management::ports() {
  const base::LockGuard guard(mutex_);
  if (ports_.empty()) {
    try {
      ports_ = list_ports();
    } catch (const base::Error&) {
      // No answer then: whoever asked asks again.
    }
  }
  return ports_;
}

void Management::remember(const Port& port, const RecordEntry& connection) {
  // Of processes on this host, and at the other ends of streams, others hear by other ways.
  const bool is_on_interface = port.is_on_network() && port.netdev_index < kFirstStreamInterface;
  if (is_on_interface && port.is_remote(gid_of(connection.remote))) {
    record_.put(connection);
  }
}

Orphans::Sent Management::send_for_the_dead(const RecordEntry& from, wire::MadIn bytes) {
  NetworkSender network;
  {
    const base::LockGuard guard(mutex_);
    network = network_;
  }
  Mad mad{from.local, from.remote, from.flow_label, from.traffic_class, from.hop_limit, {}};
  std::ranges::copy(bytes, mad.bytes.begin());
  for (const auto& own : network ? ports() : std::vector<std::shared_ptr<const Port>>{}) {
    if (own->is_on_network() && own->owns(gid_of(from.local))) {
      static_cast<void>(network(*own, mad));  // it is tried again
      return Orphans::Sent::yes;
    }
  }
  return Orphans::Sent::not_from_here;
}

bool Management::is_alive(uint32_t slot) {
  const auto socket = this->socket();
  return socket != nullptr && socket->is_alive(slot);
}

void Management::on_peer_gone(uint32_t slot) { push({Notice::Kind::peer_gone, slot, {}}); }

void Management::leave() {
  const bool was_open = is_open_.exchange(false);
  if (was_open) {
    services_.leave();
    record_.leave();
    const base::LockGuard guard(mutex_);
    socket_->release();
  }
}

void Management::abandon_after_fork() {
  is_open_.store(false);
  record_.abandon_after_fork();
  orphans_.abandon_after_fork();
  if (socket_ != nullptr) {
    socket_->abandon_after_fork();
  }
  poller_.reset();
  bell_.reset();
}

}  // namespace ringbolt::device
