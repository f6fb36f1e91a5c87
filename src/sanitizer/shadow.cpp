// What is posted and polled: noted, looked at, and given to the device or the program.

#include "sanitizer/shadow.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/in_place.h"
#include "base/lock_guard.h"
#include "sanitizer/mapped.h"
#include "sanitizer/overlap_rules.h"
#include "sanitizer/poison.h"
#include "sanitizer/posted_list.h"
#include "sanitizer/queue_rules.h"
#include "sanitizer/received_data.h"
#include "sanitizer/sent_data.h"
#include "sanitizer/ticket.h"

namespace ringbolt::sanitizer {
namespace {

/// What a device answers to a list, and how many of its requests it has taken.
struct Outcome {
  int error = 0;
  size_t taken = 0;
};

/// Posts the list and tells the program which of its requests was refused, as far as the device says so.
/// `one_by_one`: in posts of one request each, which the device takes as it takes the list. Of a device that leaves
/// bad_wr alone nobody knows else how many it has taken: what it writes to would be given back as if it were refused.
/// `post(first, &refused)`: the device's call.
template <class Wr, class Post>
Outcome post_list(PostedList<Wr>& list, bool one_by_one, Wr** bad, const Post& post) {
  size_t posted = 0;
  for (Wr* next = list.first(); next != nullptr;) {
    Wr* const first = next;
    next = one_by_one ? std::exchange(first->next, nullptr) : nullptr;
    Wr* refused = nullptr;  // never the program's pointer, which stays as it is where the device names none
    if (const int error = post(first, &refused)) {
      if (refused == nullptr) {
        return {error, posted};
      }
      const size_t place = list.place_of(refused);
      if (bad != nullptr) {
        *bad = list.original(place);
      }
      return {error, place};
    }
    ++posted;
  }
  return {0, list.requests().size()};
}

}  // namespace

Shadow::Shadow(const Wish& wish, const Calls& calls)
    : wish_(wish),
      calls_(calls),
      portable_(wish.has(Kind::portable)),
      // So that poison which an earlier process has left in shared memory or a file is mostly not taken for ours.
      requests_(static_cast<uint32_t>(base::now_ns() * 0x9e37'79b9)),  // from another number on each time
      kept_(calls.memory),
      remote_(calls.race_table) {}

void Shadow::tell(const std::optional<Finding>& found) {
  if (found && wish_.has(found->kind)) {
    reports_.report(*found);
  }
}

void Shadow::tell_all(const std::vector<Finding>& found) {
  for (const Finding& one : found) {
    tell(one);
  }
}

// --- Posts

int Shadow::post_send(ibv_qp* c, ibv_send_wr* wr, ibv_send_wr** bad, const base::CallSite& site) {
  QueuePair* const qp = find(c);
  if (qp == nullptr || wr == nullptr) {
    return calls_.post_send(c, wr, bad);
  }
  {
    // From the first note to the device's answer: done_with() relies on the order being the device's.
    const PostGuard order(qp->send_order);
    PostedList<ibv_send_wr> list(wr);
    std::vector<uint32_t> numbers;
    for (ibv_send_wr& one : list.requests()) {
      numbers.push_back(open_send(*qp, one, site));
    }
    // Without `bad` the device takes all of them or none: the list must reach it as one.
    const bool one_by_one = bad != nullptr && !qp->names_refused;
    const auto post = [&](ibv_send_wr* first, ibv_send_wr** refused) {
      return calls_.post_send(c, first, bad == nullptr ? nullptr : refused);
    };
    if (const auto [error, taken] = post_list(list, one_by_one, bad, post); error != 0) {
      drop_from(numbers, taken);
      after_send(*qp, error, site);
      return error;
    }
  }
  after_send(*qp, 0, site);
  return 0;
}

/// On a queue pair, or a shared queue: the other one is null.
template <class Object, class Post>
int Shadow::post_receives(Object* c, Post post, QueuePair* qp, SharedQueue* srq, ibv_recv_wr* wr, ibv_recv_wr** bad,
                          const base::CallSite& site) {
  if ((qp == nullptr && srq == nullptr) || wr == nullptr) {
    return post(c, wr, bad);
  }
  {
    const PostGuard order(qp != nullptr ? qp->receive_order : srq->order);
    PostedList<ibv_recv_wr> list(wr);
    std::vector<uint32_t> numbers;
    for (ibv_recv_wr& one : list.requests()) {
      numbers.push_back(open_receive(qp, srq, c->pd, one, site));
    }
    const bool one_by_one = qp != nullptr && !qp->names_refused;  // of shared queues all devices name it
    const auto post_to = [&](ibv_recv_wr* first, ibv_recv_wr** refused) { return post(c, first, refused); };
    if (const auto [error, taken] = post_list(list, one_by_one, bad, post_to); error != 0) {
      drop_from(numbers, taken);
      return error;
    }
  }
  after_receive(qp, srq, site);
  return 0;
}

int Shadow::post_receive(ibv_qp* c, ibv_recv_wr* wr, ibv_recv_wr** bad, const base::CallSite& site) {
  return post_receives(c, calls_.post_receive, find(c), nullptr, wr, bad, site);
}

int Shadow::post_srq_receive(ibv_srq* c, ibv_recv_wr* wr, ibv_recv_wr** bad, const base::CallSite& site) {
  return post_receives(c, calls_.post_srq_receive, nullptr, find(c), wr, bad, site);
}

uint32_t Shadow::open_send(QueuePair& qp, ibv_send_wr& wr, const base::CallSite& site) {
  Owner request = request_of(qp, wr, site);
  tell(portable_.of_request(wr.opcode, request->length, site));
  std::vector<Finding> found;
  std::vector<Piece> copied = copied_pieces(wr, qp.caps.max_inline_data);
  {
    const base::LockGuard guard(mutex_);
    request->number = requests_.issue();
    if (uses_memory(wr)) {
      resolve(*request, wr.sg_list, wr.num_sge);
      find_overlaps(requests_, *request, wr.sg_list, found);
    }
    find_overlaps_of_copy(requests_, *request, copied, found);
  }
  if (wish_.has(Kind::early)) {
    // What is not mapped is the device's to stumble over, or to refuse without a look.
    std::erase_if(copied, [](const Piece& one) { return !is_mapped(one.address, one.length); });
    find_poison_in(*request, copied);
  }
  // Senders that leave their bytes in place for longer than the completion are our own, and mean it.
  inspect_source(*request, wr.sg_list, (wr.send_flags & base::kStaysInPlace) == 0);
  {
    const base::LockGuard guard(mutex_);
    // In the table before the device has it: its completion may be polled at once, by another thread.
    if (request->is_one_sided() && wish_.has(Kind::races)) {
      remote_.enter(requests_, *request, found);
    }
    if (request->use == Use::read) {
      hold_back_data(*request, wr.sg_list);
    }
    wr.wr_id = ticket_of(request->number);
    count_in(requests_.insert(std::move(request)));
  }
  tell_all(found);
  return *number_of(wr.wr_id);
}

uint32_t Shadow::open_receive(QueuePair* qp, SharedQueue* srq, ibv_pd* pd, ibv_recv_wr& wr,
                              const base::CallSite& site) {
  Owner request = request_of(qp, srq, pd, wr, site);
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    resolve(*request, wr.sg_list, wr.num_sge);
    find_overlaps(requests_, *request, wr.sg_list, found);
    request->number = requests_.issue();
    hold_back_data(*request, wr.sg_list);
    wr.wr_id = ticket_of(request->number);
    count_in(requests_.insert(std::move(request)));
  }
  tell_all(found);
  return *number_of(wr.wr_id);
}

void Shadow::resolve(Request& request, const ibv_sge* list, int count) {
  const bool is_sound = count >= 0 && count <= kMostPieces && (count == 0 || list != nullptr);
  request.has_unknown_memory = !is_sound || !regions_.resolve(request, {list, static_cast<size_t>(count)});
}

bool Shadow::take_kept(Request& request, ibv_sge* list) {
  const bool may_lie_elsewhere = !request.has_unknown_memory && (request.qp == nullptr || request.qp->keeps);
  return may_lie_elsewhere && kept_.take(request, list);
}

void Shadow::hold_back_data(Request& request, ibv_sge* list) {
  if (!wish_.has(Kind::early) || request.is_given_up || find_unmapped(request) != nullptr ||
      !take_kept(request, list)) {
    return;
  }
  // A peer may write there at any time what is not ours to take back.
  const Regions* const regions = &regions_;
  hold_back(request, std::ranges::none_of(request.pieces, [&](const Piece& one) { return regions->is_exposed(one); }));
  if (request.is_poisoned) {
    // Kept when the request is gone: poison may have been copied on before.
    poisoned_.note(request.number, request.posted);
  }
}

void Shadow::inspect_source(Request& request, ibv_sge* list, bool may_be_copied) {
  if (request.use != Use::send || request.pieces.empty() || request.is_given_up) {
    return;
  }
  const Piece* const gone = find_unmapped(request);  // looked at first: memory of ours may take its place
  if (wish_.has(Kind::buffers) && may_be_copied) {
    const base::LockGuard guard(mutex_);
    take_kept(request, list);
  }
  if (gone != nullptr) {
    tell(give_up_unmapped(request, *gone));
    return;
  }
  note_source(request, wish_.has(Kind::buffers));
  find_poison_in(request, request.pieces);
}

void Shadow::find_poison_in(const Request& request, std::span<const Piece> pieces) {
  uint32_t first = 0;
  uint32_t issued = 0;
  {
    const base::LockGuard guard(mutex_);
    first = requests_.first_number();
    issued = poisoned_.is_empty() ? 0 : requests_.issued();
  }
  for (const Piece& one : pieces) {
    const auto poison = issued == 0 ? std::nullopt : find_poison(one.memory(), first, issued);
    if (!poison) {
      continue;
    }
    base::CallSite receive;
    {
      const base::LockGuard guard(mutex_);
      receive = poisoned_.of(poison->number);
    }
    if (receive) {
      tell(sent_before_received(request, one, poison->offset, receive));
    }
  }
}

void Shadow::after_send(const QueuePair& qp, int error, const base::CallSite& site) {
  if (!wish_.has(Kind::queues)) {
    return;
  }
  std::optional<Finding> failure;
  std::optional<Finding> full;
  std::optional<Finding> overrun;
  {
    const base::LockGuard guard(mutex_);
    if (error != 0) {
      full = find_refused_send(qp, error, site);
    } else {
      failure = find_post_after_failure(qp, "sends", site);
      full = find_send_queue_overrun(qp, site);
      overrun = find_completion_queue_overrun(qp.send_cq, 0, qp.qpn, site);
    }
  }
  tell(failure);
  tell(full);
  tell(overrun);
}

void Shadow::after_receive(const QueuePair* qp, const SharedQueue* srq, const base::CallSite& site) {
  if (!wish_.has(Kind::queues)) {
    return;
  }
  std::vector<std::optional<Finding>> found;
  {
    const base::LockGuard guard(mutex_);
    if (qp != nullptr) {
      found.push_back(find_post_after_failure(*qp, "receives", site));
      found.push_back(find_completion_queue_overrun(qp->receive_cq, 0, qp->qpn, site));
    } else {
      queues_.each_of(*srq, [&](const QueuePair& one) {
        found.push_back(find_completion_queue_overrun(one.receive_cq, srq->posted, one.qpn, site));
      });
    }
  }
  for (const auto& one : found) {
    tell(one);
  }
}

// --- Requests that are over

Shadow::Owner Shadow::take_out(uint32_t number) {
  Owner request = requests_.take_out(number);
  if (request != nullptr) {
    remote_.leave(*request);
    count_out(*request);
  }
  return request;
}

void Shadow::drop(uint32_t number) {
  const Owner request = take_out(number);
  if (request == nullptr) {
    return;
  }
  unpoison(*request);
  KeptMemories::give_back(*request);
  requests_.remember(*request);
}

void Shadow::drop_from(const std::vector<uint32_t>& numbers, size_t first) {
  const base::LockGuard guard(mutex_);
  for (size_t i = numbers.size(); i > first; --i) {
    drop(numbers[i - 1]);
  }
}

/// A negative answer of the device settles nothing.
int Shadow::poll_cq(ibv_cq* cq, int count, ibv_wc* wc, const base::CallSite& site) {
  const int got = calls_.poll_cq(cq, count, wc);
  {
    const base::LockGuard guard(mutex_);
    if (CompletionQueue* const known = queues_.find(cq); known != nullptr) {
      known->note_poll();
    }
  }
  for (int i = 0; i < got; ++i) {
    settle(wc[i], site);
  }
  return got;
}

void Shadow::settle(ibv_wc& wc, const base::CallSite& site) {
  const auto number = number_of(wc.wr_id);
  if (!number) {
    return;
  }
  std::vector<Owner> over;
  {
    const base::LockGuard guard(mutex_);
    const Request* const request = requests_.find(*number);
    if (request == nullptr) {
      // Of a queue pair that was reset or destroyed, whose completions were left in the queue.
      wc.wr_id = requests_.old_id(*number);
      return;
    }
    wc.wr_id = request->wr_id;
    QueuePair* const qp = request->qp;
    if (qp != nullptr) {
      qp->note_outcome(wc.status, site);
    }
    if (request->use == Use::receive) {
      over.push_back(take_out(*number));
    } else {
      for (const uint32_t one : qp->sends.done_with(*number)) {
        over.push_back(take_out(one));
      }
    }
    for (const Owner& one : over) {
      for (KeptMemory* used : {one->kept, one->lender}) {
        if (used != nullptr) {
          used->begin_use();  // the domain must not go while finish() copies without the lock
        }
      }
    }
  }
  for (const Owner& one : over) {
    finish(*one, wc, site);
  }
  const base::LockGuard guard(mutex_);
  for (const Owner& one : over) {
    const std::array used_by_it = {one->kept, one->lender};  // which the request forgets
    KeptMemories::give_back(*one);
    for (KeptMemory* used : used_by_it) {
      if (used != nullptr) {
        used->end_use();
      }
    }
  }
}

void Shadow::finish(Request& request, const ibv_wc& wc, const base::CallSite& site) {
  if (request.met) {
    tell(race_between_processes(request, *request.met, site));
  }
  if (request.read_only && wc.status == IBV_WC_LOC_PROT_ERR) {
    tell(region_not_writable(request, site));
  }
  if (request.is_forsaken) {
    return;
  }
  const bool is_done = wc.status == IBV_WC_SUCCESS;
  if (request.use == Use::send) {
    tell(is_done ? find_changed_source(request, site) : std::nullopt);
  } else if (request.kept != nullptr && !is_done) {
    unpoison(request);
  } else if (request.kept != nullptr) {
    const bool is_written_by_peer = request.use == Use::receive && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    tell(place(request, request.use == Use::read ? request.length : is_written_by_peer ? 0 : wc.byte_len, site));
  }
}

}  // namespace ringbolt::sanitizer
