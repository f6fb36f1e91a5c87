#include "link/peer_lines.h"

#include <unistd.h>

#include <utility>

#include "base/process_descriptor.h"
#include "link/peer_process.h"

namespace ringbolt::link {
namespace {

/// Read in one go, so that no talker starves the others.
constexpr int kMaxDatagrams = 64;
/// What is still read from a peer that ended: more than a socket holds, so only a living, lying one loses anything.
constexpr int kMaxLastDatagrams = 8192;

}  // namespace

void Greeting::allow_access_for(pid_t pid) const {
  if (is_yama_restricted) {
    allow_memory_access(pid);
  }
}

std::shared_ptr<Line> make_line(base::UniqueFd fd, pid_t pid, PeerTable& table, const PeerEvents& events) {
  auto line = std::make_shared<Line>();
  line->id = table.next_id();
  line->pid = pid;
  line->socket = std::make_shared<PeerSocket>(std::move(fd), events.watch_of_line(line->id));
  return line;
}

PeerLines::PeerLines(RendezvousSink& sink, PeerTable& table, PeerEvents& events, const Greeting& greeting,
                     uint32_t own_slot)
    : sink_(sink), table_(table), events_(events), greeting_(greeting), own_slot_(own_slot) {}

void PeerLines::take(base::UniqueFd fd) {
  const Credentials other = peer_credentials(fd.get());
  if (other.uid != geteuid()) {
    note_refusal(other.pid, "it belongs to another user");
    return;
  }
  const std::shared_ptr<Line> line = make_line(std::move(fd), other.pid, table_, events_);
  if (const std::shared_ptr<Line> dropped = table_.insert_stranger(line)) {
    note_refusal(dropped->pid, "too many connections without Hello");
    lose(dropped);
  }
  if (!line->socket->watch()) {
    lose(line);
  }
}

void PeerLines::serve(uint64_t id, uint32_t events) {
  const std::shared_ptr<Line> line = table_.line(id);
  if (line == nullptr) {
    return;  // it ended earlier in the same batch of events
  }
  if ((events & EPOLLOUT) != 0) {
    line->socket->flush();
  }
  for (int i = 0; i < kMaxDatagrams && !is_stopped(); ++i) {
    const Step result = step(line);
    if (result == Step::over) {
      lose(line);
    }
    if (result != Step::again) {
      return;
    }
  }
}

void PeerLines::bury(uint64_t id) {
  if (const std::shared_ptr<ConnectedPeer> peer = table_.peer(id)) {
    finish(peer);
  }
}

void PeerLines::retry() {
  for (const std::shared_ptr<Line>& line : table_.lines()) {
    line->socket->flush();
  }
}

/// Reads and delivers one message.
PeerLines::Step PeerLines::step(const std::shared_ptr<Line>& line) {
  Datagram datagram;
  switch (line->socket->receive(datagram)) {
    case Received::nothing:
      return Step::idle;
    case Received::end:
      return Step::over;
    case Received::oversized:
      log_.dropped(own_slot_, line->pid, "a message or its descriptors did not fit");
      return Step::over;
    case Received::message:
      break;
  }
  const std::optional<Message> message = parse(datagram.bytes());
  if (!message || (descriptor_count(*message) != datagram.descriptor_count && !datagram.has_lost_descriptors) ||
      !handle(line, *message, datagram)) {
    log_.dropped(own_slot_, line->pid,
                 datagram.has_lost_descriptors ? "this process has no file descriptor left (ulimit -n)"
                                               : "it sent what is no message of this version");
    return Step::over;
  }
  return line->is_parked ? Step::idle : Step::again;
}

/// What came with the offer; the descriptors that are there belong to its first files.
OfferFiles files_of(const Offer& offer, Datagram& datagram) {
  OfferFiles files;
  files.lane = std::move(datagram.descriptors[0]);
  size_t next = 1;
  if (offer.receive_channel != 0) {
    files.receive_channel = std::move(datagram.descriptors[next++]);
  }
  if (offer.send_channel != 0 && offer.send_channel != offer.receive_channel) {
    files.send_channel = std::move(datagram.descriptors[next]);
  }
  return files;
}

/// False when the message is not allowed here.
bool PeerLines::handle(const std::shared_ptr<Line>& line, const Message& message, Datagram& datagram) {
  if (std::holds_alternative<Poke>(message)) {
    sink_.on_poke();
    return true;
  }
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return greet(line, *hello, datagram);
  }
  if (!line->has_heard_hello) {
    return false;
  }
  if (const auto* offer = std::get_if<Offer>(&message)) {
    sink_.on_offer(line->peer, *offer, files_of(*offer, datagram));
  } else if (const auto* withdraw = std::get_if<Withdraw>(&message)) {
    sink_.on_withdraw(line->peer, *withdraw);
  } else if (const auto* arena = std::get_if<Arena>(&message)) {
    sink_.on_arena(line->peer, *arena, std::move(datagram.descriptors[0]));
  } else if (const auto* release = std::get_if<Release>(&message)) {
    sink_.on_release(line->peer, *release);
  } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
    sink_.on_refuse(line->peer, *refuse);
  } else {
    line->peer->note_bye();
  }
  return true;
}

/// A second Hello must say the same: two calls that crossed bring two.
bool PeerLines::greet(const std::shared_ptr<Line>& line, const Hello& hello, Datagram& datagram) {
  if (line->has_heard_hello) {
    return hello == line->introduction.hello;
  }
  const bool is_expected = line->peer == nullptr || line->peer->slot() == hello.slot;
  if (!is_expected || hello.incarnation == 0 || !is_bell(datagram.descriptors[0].get()) ||
      !is_read_only_file(datagram.descriptors[1].get())) {
    return false;
  }
  line->has_heard_hello = true;
  line->introduction = {hello, std::move(datagram.descriptors[0]), std::move(datagram.descriptors[1]),
                        std::move(datagram.descriptors[2])};
  if (line->peer == nullptr) {
    // It called us. Answered before it is known whose line this is: when both sides called, each waits for this Hello.
    greeting_.allow_access_for(line->pid);
    line->socket->send(greeting_.hello.bytes(), greeting_.descriptors);
    welcome(line);
    return true;
  }
  make_ready(*line);
  welcome_parked(hello.slot);
  return true;
}

void PeerLines::make_ready(Line& line) {
  Introduction handed_over{line.introduction.hello, std::move(line.introduction.bell),
                           std::move(line.introduction.region_table), std::move(line.introduction.wake_table)};
  line.peer->become_ready(std::move(handed_over));
  sink_.on_ready(line.peer);
}

/// Finds the peer of a line that called us and said Hello.
void PeerLines::welcome(const std::shared_ptr<Line>& line) {
  const uint32_t slot = line->introduction.hello.slot;
  base::UniqueFd process = line->pid > 0 ? base::open_process(line->pid) : base::UniqueFd();
  const auto candidate = std::make_shared<ConnectedPeer>(line->id, slot, line->pid, std::move(process), line->socket);
  switch (table_.seat(*line, candidate)) {
    case PeerTable::Seat::parked:
      line->socket->unwatch();
      return;
    case PeerTable::Seat::joined:
      line->introduction.bell.reset();
      line->introduction.region_table.reset();
      line->introduction.wake_table.reset();
      break;
    case PeerTable::Seat::fresh:
      if (candidate->process_fd() >= 0) {
        events_.add(candidate->process_fd(), Source::process, candidate->id());
      }
      make_ready(*line);
      break;
    case PeerTable::Seat::closed:
      return;
  }
  if (!line->socket->watch()) {
    lose(line);
  }
}

/// The slot is pending no longer.
void PeerLines::welcome_parked(uint32_t slot) {
  for (const std::shared_ptr<Line>& parked : table_.parked_at(slot)) {
    welcome(parked);
  }
}

/// It ends before its Hello came on the line that we called it on. What it said on a line that it called us on, its Bye
/// perhaps, is its word all the same.
void PeerLines::join_parked(const std::shared_ptr<ConnectedPeer>& peer) {
  for (const std::shared_ptr<Line>& line : table_.join_parked(peer)) {
    if (!peer->is_ready()) {
      make_ready(*line);
    }
  }
}

void PeerLines::lose(const std::shared_ptr<Line>& line) {
  line->socket->end();
  table_.remove(*line);
  if (line->peer) {
    finish(line->peer);
  }
}

/// The peer's process ended or a line of it broke: delivers what it still sent, then tells of its end.
void PeerLines::finish(const std::shared_ptr<ConnectedPeer>& peer) {
  if (!peer->is_ready() && !is_stopped()) {
    join_parked(peer);
  }
  for (const std::shared_ptr<Line>& line : table_.lines_of(*peer)) {
    for (int i = 0; i < kMaxLastDatagrams && !is_stopped() && step(line) == Step::again; ++i) {
    }
    line->socket->end();
    table_.remove(*line);
  }
  if (peer->is_gone() || is_stopped()) {
    return;
  }
  if (peer->process_fd() >= 0) {
    // Before the descriptor is closed, see PeerEvents::remove().
    events_.remove(peer->process_fd());
  }
  peer->end();
  table_.remove(*peer);
  sink_.on_gone(peer);
  welcome_parked(peer->slot());
}

}  // namespace ringbolt::link
