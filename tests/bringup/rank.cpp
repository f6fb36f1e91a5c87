// One rank of a cluster brings all its cables up and sends a message over each: bringup_rank FOLDER. Prints the cables
// and how each was found out, then "ok" for each message that came over the right one. Exit code 1 with what is wrong.

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "base/clock.h"
#include "bringup/cables.h"
#include "bringup/survey.h"
#include "bringup/trial.h"
#include "meeting_place.h"
#include "verbs/codes.h"
#include "verbs/slab.h"

namespace ringbolt::bringup {
namespace {

constexpr uint32_t kTrialTimeoutMs = 10000;
constexpr uint64_t kPatienceNs = 30'000'000'000;
constexpr size_t kMessageBytes = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    throw std::runtime_error(std::string(name) + " is not set");
  }
  return value;
}

/// One end of a cable, with all that it takes.
struct End {
  End(const verbs::Library& library, const PortCard& card, uint8_t gid_index, uint32_t psn)
      : context(library, card.device),
        pd(context),
        cq(context, 16),
        slab(pd, 4 * kMessageBytes),
        region(pd, slab.bytes()),
        qp(pd, {.type = card.capabilities.has_uc ? IBV_QPT_UC : IBV_QPT_RC,
                .send_cq = &cq,
                .receive_cq = &cq,
                .send_depth = 4,
                .receive_depth = 4}) {
    qp.to_init({.port = card.port, .gid_index = gid_index, .mtu = verbs::mtu_code(card.mtu_bytes), .psn = psn});
  }
  verbs::Context context;
  verbs::ProtectionDomain pd;
  verbs::CompletionQueue cq;
  verbs::Slab slab;
  verbs::MemoryRegion region;
  verbs::UnconnectedQueuePair qp;
};

/// What the ends of a cable tell each other.
struct Contact {
  uint32_t cable = 0;
  uint32_t qp_number = 0;
  uint32_t psn = 0;
};

class Rank {
 public:
  explicit Rank(const std::string& folder)
      : rank_(static_cast<uint32_t>(std::stoul(variable("RINGBOLT_NODE")))),
        place_(folder, rank_, static_cast<uint32_t>(std::stoul(variable("RINGBOLT_NODES")))) {}

  void run() {
    exchange_cards();
    find_cables();
    connect_all();
    send_all();
  }

 private:
  void exchange_cards() {
    const auto own = emit_cards(survey(library_).cards());
    for (const auto& bytes : place_.all_gather("cards", own)) {
      auto cards = parse_cards(bytes);
      if (!cards) {
        throw std::runtime_error(cards.error().text());
      }
      cards_.push_back(std::move(*cards));
    }
  }

  void find_cables() {
    Evidence evidence;
    std::vector<TrialSuccess> successes;
    for (const TrialSuccess& pair : trial_pairs(cards_, evidence, rank_)) {
      const PortCard& own = cards_[rank_][pair.from.port];
      const PortCard& other = cards_[pair.to.rank][pair.to.port];
      const TrialCandidate candidate{other.gid(), other.lid};
      const auto errors =
          try_candidates(library_, own.device, own.capabilities.has_uc ? IBV_QPT_UC : IBV_QPT_RC,
                         {.port = own.port, .gid_index = own.gid_index}, {&candidate, 1}, kTrialTimeoutMs, UINT64_MAX);
      if (errors[0] == 0) {
        successes.push_back(pair);
      }
    }
    evidence.are_trials_made = true;
    for (const auto& trials : place_.all_gather_values("trials", successes)) {
      evidence.trials.insert(evidence.trials.end(), trials.begin(), trials.end());
    }
    found_ = match_cables(cards_, evidence);
    for (const std::string& conflict : found_.conflicts) {
      std::cout << "conflict: " << conflict << '\n';
    }
    for (const UnmatchedPort& one : found_.unmatched) {
      std::cout << "unmatched: " << name_of(cards_, one.port) << ": " << one.reason << '\n';
    }
    for (const Cable& one : found_.cables) {
      std::cout << "cable: " << name_of(cards_, one.a) << " - " << name_of(cards_, one.b) << '\n';
    }
  }

  void connect_all() {
    std::vector<Contact> contacts;
    for (uint32_t i = 0; i < found_.cables.size(); ++i) {
      const Cable& cable = found_.cables[i];
      ends_.emplace_back();
      if (cable.a.rank == rank_ || cable.b.rank == rank_) {
        const bool is_a = cable.a.rank == rank_;
        const uint32_t psn = 1000 * i + rank_;
        ends_[i] = std::make_unique<End>(library_, cards_[rank_][is_a ? cable.a.port : cable.b.port],
                                         is_a ? cable.gid_index_a : cable.gid_index_b, psn);
        contacts.push_back({i, ends_[i]->qp.number(), psn});
      }
    }
    const auto all = place_.all_gather_values("contacts", contacts);
    for (uint32_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i]) {
        const Cable& cable = found_.cables[i];
        const PortOfRank other = cable.a.rank == rank_ ? cable.b : cable.a;
        connect(i, other, cable.a.rank == rank_ ? cable.gid_index_b : cable.gid_index_a, all[other.rank]);
      }
    }
    place_.all_gather_values("ready", std::vector<uint32_t>{rank_});
  }

  void connect(uint32_t cable, PortOfRank other, uint8_t gid_index, const std::vector<Contact>& contacts) {
    End& end = *ends_[cable];
    const PortCard& card = cards_[other.rank][other.port];
    for (const Contact& one : contacts) {
      for (const CardGid& gid : card.gids) {
        if (one.cable == cable && gid.index == gid_index) {
          end.qp.to_rtr({one.qp_number, one.psn, card.lid, ibv_gid_of(gid.gid)});
          ibv_sge to = end.region.piece(kMessageBytes, kMessageBytes);
          ibv_recv_wr receive{};
          receive.sg_list = &to;
          receive.num_sge = 1;
          require(end.qp.post_receive(receive), "post a receive");
          connected_.push_back({cable, std::move(end.qp).to_rts()});
          return;
        }
      }
    }
    throw std::runtime_error(name_of(cards_, other) + " knows nothing of cable " + std::to_string(cable));
  }

  static void require(int error, const char* what) {
    if (error != 0) {
      throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
    }
  }

  /// What goes over a cable names it and its sender.
  std::string greeting(uint32_t cable, uint32_t sender) const {
    const Cable& one = found_.cables[cable];
    return name_of(cards_, one.a) + " - " + name_of(cards_, one.b) + ", from rank " + std::to_string(sender);
  }

  void send_all() {
    for (const auto& [cable, qp] : connected_) {
      End& end = *ends_[cable];
      const std::string text = greeting(cable, rank_);
      std::memcpy(end.slab.bytes().data(), text.data(), text.size());
      ibv_sge from = end.region.piece(0, kMessageBytes);
      ibv_send_wr send{};
      send.sg_list = &from;
      send.num_sge = 1;
      send.opcode = IBV_WR_SEND;
      send.send_flags = IBV_SEND_SIGNALED;
      require(qp.post_send(send), "post a send");
    }
    for (const auto& [cable, qp] : connected_) {
      await_two(*ends_[cable]);
      const Cable& one = found_.cables[cable];
      const uint32_t sender = one.a.rank == rank_ ? one.b.rank : one.a.rank;
      const std::string got = reinterpret_cast<const char*>(ends_[cable]->slab.bytes().data() + kMessageBytes);
      if (got != greeting(cable, sender)) {
        throw std::runtime_error("got \"" + got + "\" instead of \"" + greeting(cable, sender) + "\"");
      }
      std::cout << "ok: " << got << '\n';
    }
    place_.all_gather_values("done", std::vector<uint32_t>{rank_});
  }

  /// The send and the receive.
  static void await_two(const End& end) {
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    for (int n_left = 2; n_left > 0;) {
      ibv_wc one{};
      const auto n_taken = end.cq.poll({&one, 1});
      if (!n_taken || (*n_taken == 1 && one.status != IBV_WC_SUCCESS)) {
        throw std::runtime_error(end.context.device() + ": completion status " + std::to_string(one.status));
      }
      n_left -= static_cast<int>(*n_taken);
      if (base::now_ns() > deadline) {
        throw std::runtime_error(end.context.device() + ": no completion within 30 s");
      }
    }
  }

  uint32_t rank_;
  test::MeetingPlace place_;
  verbs::Library library_ = verbs::Library::open("auto");
  AllCards cards_;
  Cables found_;
  std::vector<std::unique_ptr<End>> ends_;  ///< by cable; null: not ours
  std::vector<std::pair<uint32_t, verbs::QueuePair>> connected_;
};

}  // namespace
}  // namespace ringbolt::bringup

int main(int argc, char** argv) {
  try {
    if (argc != 2) {
      throw std::runtime_error("usage: bringup_rank FOLDER");
    }
    ringbolt::bringup::Rank(argv[1]).run();
    return 0;
  } catch (const std::exception& error) {
    std::cout << "failed: " << error.what() << '\n';
    return 1;
  }
}
