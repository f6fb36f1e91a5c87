// What is posted: copied, noted, looked at, and given to the device.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/crc.h"
#include "base/in_place.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "sanitizer/mapped.h"
#include "sanitizer/poison.h"
#include "sanitizer/shadow.h"
#include "sanitizer/ticket.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

constexpr int kMostPieces = 1024;  // of one request: more is a number that nobody meant

bool carries_data(ibv_wr_opcode opcode) { return opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW; }

bool is_answered(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

std::span<std::byte> memory_of(const Piece& piece) {
  return {reinterpret_cast<std::byte*>(piece.address), piece.length};
}

}  // namespace

/// A list of requests as the device gets it, which may be changed.
template <class Wr>
struct Shadow::Batch {
  std::vector<Wr> copies;
  std::vector<Wr*> originals;
  std::vector<ibv_sge> pieces;
  std::vector<uint32_t> numbers;
};

template <class Wr>
Shadow::Batch<Wr> Shadow::copy_of(Wr* wr) {
  Batch<Wr> batch;
  size_t total = 0;
  const auto is_sound = [](const Wr& one) {
    return one.num_sge > 0 && one.num_sge <= kMostPieces && one.sg_list != nullptr;
  };
  for (Wr* at = wr; at != nullptr; at = at->next) {
    batch.originals.push_back(at);
    batch.copies.push_back(*at);
    total += is_sound(*at) ? static_cast<size_t>(at->num_sge) : 0;
  }
  batch.pieces.reserve(total);  // which stay where they are
  for (size_t i = 0; i < batch.copies.size(); ++i) {
    Wr& one = batch.copies[i];
    one.next = i + 1 < batch.copies.size() ? &batch.copies[i + 1] : nullptr;
    if (is_sound(one)) {
      const auto* const first = one.sg_list;
      one.sg_list = batch.pieces.data() + batch.pieces.size();
      batch.pieces.insert(batch.pieces.end(), first, first + one.num_sge);
    }
  }
  return batch;
}

int Shadow::post_send(ibv_qp* c, ibv_send_wr* wr, ibv_send_wr** bad, const base::CallSite& site) {
  QueuePair* const qp = find(c);
  if (qp == nullptr || wr == nullptr) {
    return calls_.post_send(c, wr, bad);
  }
  {
    const base::LockGuard order(qp->send_order);
    Batch<ibv_send_wr> batch = copy_of(wr);
    for (ibv_send_wr& one : batch.copies) {
      batch.numbers.push_back(open_send(*qp, one, site));
    }
    ibv_send_wr* refused = batch.copies.data();
    const int error = calls_.post_send(c, batch.copies.data(), bad == nullptr ? nullptr : &refused);
    if (error != 0) {
      const auto first = static_cast<size_t>(refused - batch.copies.data());
      if (bad != nullptr) {
        *bad = batch.originals[first];
      }
      {
        const base::LockGuard guard(mutex_);
        for (size_t i = batch.numbers.size(); i > first; --i) {
          drop(batch.numbers[i - 1]);
        }
      }
      send_refused(*qp, error, site);
      return error;
    }
  }
  after_send(*qp, site);
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
    const base::LockGuard order(qp != nullptr ? qp->receive_order : srq->order);
    Batch<ibv_recv_wr> batch = copy_of(wr);
    for (ibv_recv_wr& one : batch.copies) {
      batch.numbers.push_back(open_receive(qp, srq, c->pd, one, site));
    }
    ibv_recv_wr* refused = batch.copies.data();
    if (const int error = post(c, batch.copies.data(), &refused)) {
      const auto first = static_cast<size_t>(refused - batch.copies.data());
      *bad = batch.originals[first];
      const base::LockGuard guard(mutex_);
      for (size_t i = batch.numbers.size(); i > first; --i) {
        drop(batch.numbers[i - 1]);
      }
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

Shadow::Owner Shadow::request_of(QueuePair& qp, const ibv_send_wr& wr, const base::CallSite& site) {
  auto request = std::make_unique<Request>();
  request->wr_id = wr.wr_id;
  request->use = is_answered(wr.opcode) ? Use::read : Use::send;
  request->opcode = wr.opcode;
  request->is_signaled = qp.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  request->is_fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  request->qp = &qp;
  request->pd = qp.c->pd;
  request->qpn = qp.qpn;
  request->posted = site;
  const bool is_atomic = request->is_atomic();
  if (request->is_one_sided()) {
    request->remote_address = is_atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
    request->rkey = is_atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
  }
  for (int i = 0; carries_data(wr.opcode) && i < wr.num_sge && i < kMostPieces; ++i) {
    request->length += wr.sg_list[i].length;
  }
  return request;
}

uint32_t Shadow::open_send(QueuePair& qp, ibv_send_wr& wr, const base::CallSite& site) {
  Owner request = request_of(qp, wr, site);
  // Inline data are copied while they are posted, and are the program's again.
  const bool has_memory = carries_data(wr.opcode) && (wr.send_flags & IBV_SEND_INLINE) == 0;
  if (wish_.has(Kind::portable)) {
    if (const std::string why = portability_.of_request(wr.opcode, request->length); !why.empty()) {
      reports_.report(not_portable("the request works here and not everywhere", why, "posted", site));
    }
  }
  std::vector<Finding> found;
  if (has_memory) {
    const base::LockGuard guard(mutex_);
    resolve(*request, wr.sg_list, wr.num_sge);
    find_overlaps(*request, wr.sg_list, found);
  }
  // Senders that leave their bytes in place for longer than the completion are our own, and mean it.
  inspect_source(*request, wr.sg_list, (wr.send_flags & base::kStaysInPlace) == 0);
  uint32_t number = 0;
  {
    const base::LockGuard guard(mutex_);
    find_races(*request, found);
    request->number = first_number_ + issued_++;
    if (request->use == Use::read) {
      keep(*request, wr.sg_list);
    }
    qp.sends.push_back(request->number);
    qp.signaled += request->is_signaled ? 1U : 0U;
    if (request->is_signaled && qp.send_cq != nullptr) {
      ++qp.send_cq->expected;
    }
    number = insert(std::move(request));
  }
  wr.wr_id = ticket_of(number);
  report_all(found);
  return number;
}

uint32_t Shadow::open_receive(QueuePair* qp, SharedQueue* srq, ibv_pd* pd, ibv_recv_wr& wr,
                              const base::CallSite& site) {
  auto request = std::make_unique<Request>();
  request->wr_id = wr.wr_id;
  request->use = Use::receive;
  request->qp = qp;
  request->srq = srq;
  request->pd = pd;
  request->qpn = qp == nullptr ? 0 : qp->qpn;
  request->posted = site;
  std::vector<Finding> found;
  uint32_t number = 0;
  {
    const base::LockGuard guard(mutex_);
    for (int i = 0; i < wr.num_sge && i < kMostPieces; ++i) {
      request->length += wr.sg_list[i].length;
    }
    resolve(*request, wr.sg_list, wr.num_sge);
    find_overlaps(*request, wr.sg_list, found);
    request->number = first_number_ + issued_++;
    keep(*request, wr.sg_list);
    (qp != nullptr ? qp->receives : srq->posted) += 1;
    if (qp != nullptr && qp->receive_cq != nullptr) {
      ++qp->receive_cq->expected;
    }
    number = insert(std::move(request));
  }
  wr.wr_id = ticket_of(number);
  report_all(found);
  return number;
}

void Shadow::resolve(Request& request, const ibv_sge* pieces, int count) {
  if (count < 0 || count > kMostPieces || (count > 0 && pieces == nullptr)) {
    request.has_unknown_memory = true;
    return;
  }
  for (int i = 0; i < count; ++i) {
    const ibv_sge& one = pieces[i];
    if (one.length == 0) {
      continue;
    }
    const auto known = regions_.find(one.lkey);
    const bool is_good = known != regions_.end() && known->second.pd == request.pd && one.addr >= known->second.iova &&
                         one.addr - known->second.iova <= known->second.length &&
                         one.length <= known->second.length - (one.addr - known->second.iova);
    if (!is_good) {
      request.has_unknown_memory = true;
      continue;
    }
    request.pieces.push_back(
        {known->second.address + (one.addr - known->second.iova), one.length, one.lkey, static_cast<size_t>(i), {}});
  }
}

void Shadow::inspect_source(Request& request, ibv_sge* pieces, bool may_be_copied) {
  if (request.use != Use::send || request.pieces.empty() || request.is_given_up) {
    return;
  }
  // Looked at first: memory of ours may take its place.
  const auto gone =
      std::ranges::find_if(request.pieces, [](const Piece& one) { return !is_mapped(one.address, one.length); });
  if (wish_.has(Kind::buffers) && may_be_copied) {
    const base::LockGuard guard(mutex_);
    take_kept(request, pieces);
  }
  if (gone != request.pieces.end()) {
    request.is_given_up = true;
    for (const Piece& one : request.pieces) {
      if (one.kept.memory != nullptr) {
        std::memset(one.kept.memory, 0, one.length);  // so that the device does not look for it
      }
    }
    if (wish_.has(Kind::buffers)) {
      reports_.report({Kind::buffers,
                       "posted-memory-unmapped",
                       "what is posted lies in memory that is not mapped any more",
                       fmt::format("{}: {} bytes at {:#x}, of the region with lkey {:#x}", text_of(request),
                                   gone->length, gone->address, gone->lkey),
                       {{"posted", request.posted}},
                       "deregister a region before its memory is unmapped, and register what takes its place"});
    }
    return;
  }
  for (const Piece& one : request.pieces) {
    if (one.kept.memory != nullptr) {
      std::memcpy(one.kept.memory, memory_of(one).data(), one.length);
    } else if (wish_.has(Kind::buffers)) {
      request.sum = base::crc32c(request.sum, memory_of(one));
      request.is_summed = true;
    }
  }
  find_poison_in(request);
}

void Shadow::find_poison_in(const Request& request) {
  uint32_t first = 0;
  uint32_t issued = 0;
  {
    const base::LockGuard guard(mutex_);
    first = first_number_;
    issued = poisoned_.empty() ? 0 : issued_;
  }
  for (const Piece& one : request.pieces) {
    const auto poison = issued == 0 ? std::nullopt : find_poison(memory_of(one), first, issued);
    if (!poison) {
      continue;
    }
    base::CallSite posted;
    {
      const base::LockGuard guard(mutex_);
      const auto known = poisoned_.find(poison->number);
      posted = known == poisoned_.end() ? base::CallSite{} : known->second;
    }
    if (posted) {
      reports_.report({Kind::early,
                       "sent-before-received",
                       "what is sent was copied from a receive buffer before its completion",
                       fmt::format("{}: from byte {} of {} at {:#x} on it is what such a buffer holds until then",
                                   text_of(request), poison->offset, one.length, one.address),
                       {{"sent", request.posted}, {"receive posted", posted}},
                       "poll the completion of the receive or READ first, and read the buffer then"});
    }
  }
}

void Shadow::find_overlaps(Request& request, ibv_sge* pieces, std::vector<Finding>& found) {
  const auto* const known_requests = &requests_;
  for (const Piece& piece : request.pieces) {
    if (request.use == Use::send) {
      find_overlap_of_send(request, piece, pieces[piece.segment], found);
      continue;
    }
    const auto any = [](uint32_t) { return true; };
    const auto other = written_to_.overlap(piece.address, piece.length, any);
    const auto reader = sent_from_.overlap(piece.address, piece.length, [&](uint32_t number) {
      const auto known = known_requests->find(number);
      return known != known_requests->end() && !known->second->is_given_up;
    });
    const auto mention = [&](uint32_t number, std::string_view rule, std::string what) {
      Request& earlier = *known_requests->at(number);
      unpoison(earlier);
      request.is_given_up = true;  // what it holds is no one's to say
      if (wish_.has(Kind::buffers)) {
        found.push_back(
            {Kind::buffers,
             rule,
             std::move(what),
             fmt::format("{} at {:#x}; {} is not complete", text_of(request), piece.address, text_of(earlier)),
             {{"posted", request.posted}, {"first posted", earlier.posted}},
             "give each request memory of its own until its completion was polled"});
      }
    };
    if (other) {
      mention(*other, "receive-buffers-overlap", "two requests under way are received into the same memory");
    } else if (reader) {
      mention(*reader, "sent-and-received", "memory is received into while it is being sent from");
    }
  }
}

void Shadow::find_overlap_of_send(Request& request, const Piece& piece, ibv_sge& segment, std::vector<Finding>& found) {
  const auto other = written_to_.overlap(piece.address, piece.length, [](uint32_t) { return true; });
  if (!other) {
    return;
  }
  Request& target = *requests_.at(*other);
  if (request.is_fenced && target.use == Use::read && target.qp == request.qp) {
    // The device sends when it has read; what it has read lies elsewhere still.
    for (const Piece& one : target.pieces) {
      if (one.kept.memory != nullptr && piece.address >= one.address &&
          piece.address + piece.length <= one.address + one.length) {
        segment.addr = reinterpret_cast<uintptr_t>(one.kept.memory) + (piece.address - one.address);
        segment.lkey = one.kept.lkey;
        request.is_given_up = true;
        return;
      }
    }
    if (target.is_poisoned) {
      base::say(
          "ringbolt: a fenced request gathers parts of what was read before it: give RINGBOLT_SANITIZE all kinds "
          "but early, or it sends what is not there yet\n");
    }
    return;
  }
  request.is_given_up = true;
  unpoison(target);  // what is sent is what was there, as it is without us
  if (wish_.has(Kind::buffers)) {
    found.push_back({Kind::buffers,
                     "sent-and-received",
                     "memory is sent from while it is being received into",
                     fmt::format("{} at {:#x}; {} is not complete", text_of(request), piece.address, text_of(target)),
                     {{"posted", request.posted}, {"first posted", target.posted}},
                     target.use == Use::read && target.qp == request.qp
                         ? "poll the completion of the READ first, or post the send with IBV_SEND_FENCE"
                         : "poll the completion of the receive first"});
  }
}

}  // namespace ringbolt::sanitizer
