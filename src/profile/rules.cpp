#include "profile/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

namespace ringbolt::profile {
namespace {

// In the order of the enumeration. A text too few leaves null pointers at the end; one too many does not compile.
constexpr std::array<RuleText, static_cast<size_t>(Rule::count_)> kTexts{{
    {"qp-type", "the device has no queue pairs of this type", "take one that it has: UC is on every such device"},
    {"qp-limit", "the number is the device's, all programs together; to try again never helps",
     "take fewer queue pairs per cable, or end the programs that hold the others"},
    {"pd-limit", "the number is the device's, all programs together, and what killed programs leave counts for a while",
     "take one protection domain per device for the life of the process; end those that hold the others"},
    {"pd-port-down", "a port whose cable has no peer gives out no protection domain", "bring the other end up first"},
    {"cq-limit", "the number is the device's, all programs together", "share one completion queue between queue pairs"},
    {"cqe-limit", "the device has no longer completion queues", "ask for 4096 entries at most and poll in time"},
    {"mr-limit", "the number is the device's, all programs together", "register one large region and divide it"},
    {"wr-limit", "the device has no deeper work queues", "ask ibv_query_device for max_qp_wr"},
    {"sge-limit", "the device gathers and scatters no further", "copy the pieces into one buffer, or send them singly"},
    {"split-pieces", "one user saw each piece end a message, with a completion of its own",
     "copy the pieces into one buffer, or count messages and completions by pieces"},
    {"inline", "the device has no inline data", "leave IBV_SEND_INLINE out and max_inline_data at 0"},
    {"srq", "the device has no shared receive queues", "post receives to each queue pair"},
    {"address-handle", "the device has no datagrams, and so no address handles", "connect a queue pair to each peer"},
    {"memory-window", "the device has no memory windows", "register a region for each right that you want to give"},
    {"completion-channel", "the provider documents no completion channels", "poll, with a deadline"},
    {"mr-alignment", "regions begin on a page, which has 16 KiB there",
     "allocate with posix_memalign(&p, 16384, size)"},
    {"mr-zero-based", "regions are addressed by the program's own addresses", "register with the buffer's own address"},
    {"mr-access", "some users had regions with local write access alone refused, others not",
     "register with remote read and write access, too; the key lets nobody in"},
    {"mr-memory", "some users had regions on the program's heap refused, others not",
     "allocate with mmap, in whole pages"},
    {"mr-crosses-4-gib", "one user saw data arrive 4 GiB too low in regions that cross a 4 GiB boundary",
     "allocate so that no region crosses one, or compare what arrived"},
    {"late-mr", "the queue pair knows the regions that there were when it went to RTR", "register before RTR"},
    {"err-leak", "one user could deregister nothing any more after a queue pair was destroyed in the state ERR",
     "destroy queue pairs as they are, without a step to ERR, or step on to RESET first"},
    {"gid-index", "the slot is empty: which index holds the IPv4 address differs from machine to machine",
     "look through the GID table for an IPv4-mapped entry, and take its index"},
    {"empty-gid-table", "a port inside a bridge without an address of its own has no GID",
     "take the port out of the bridge, or give it an address"},
    {"unreachable", "a cable has one peer, and nothing routes beyond it", "compare the cabling with your plan"},
    {"attribute-mask", "the provider wants exactly the attributes of this step",
     "set those that the specification requires, and no others"},
    {"operation", "the cable carries messages only, no addresses and keys",
     "send, and let the receiver place the data"},
    {"write-into-stream",
     "the cable carries no address: the bytes arrive as a message, and the target memory stays as it was",
     "send instead; never take a WRITE's completion for its arrival"},
    {"message-length", "a message must fit into the queue it is posted to",
     "cut it into messages of the granted depth"},
    {"empty-send", "a Linux machine's driver refuses them on a cable to a Mac",
     "send one byte, and say inside that it counts for nothing"},
    {"frame-budget", "depth is counted in frames of 4 KiB, not in work requests",
     "keep the sum of ceil(bytes/4096) of what is posted within the granted depth (ibv_query_qp)"},
    {"frame-mismatch", "message and receive must have the same number of 4 KiB frames",
     "use one fixed size for both, and say inside how much of it counts"},
    {"receive-too-early", "this machine takes receives later", "post receives after RTS, and let a barrier follow"},
    {"norecv", "a Linux peer does not hold its sender back: it drops what meets no receive, or parks as much as fits",
     "post receives before the peer may send, and let a barrier follow"},
    {"undelivered",
     "a send completes when it leaves the program's memory: who ends the queue pair loses what is not yet on the cable",
     "wait for the peer's answer to your last message first"},
}};

// Darwin's are those of its sys/errno.h; names and numbers that agree are here for name_of_error() alone.
struct Number {
  int native;
  int darwin;
  const char* name;
};
constexpr Number kNumbers[] = {
    {EINVAL, 22, "EINVAL"},   {ENOMEM, 12, "ENOMEM"},       {EBUSY, 16, "EBUSY"},   {EOPNOTSUPP, 102, "EOPNOTSUPP"},
    {ENODATA, 96, "ENODATA"}, {ETIMEDOUT, 60, "ETIMEDOUT"}, {EFAULT, 14, "EFAULT"}, {EMSGSIZE, 40, "EMSGSIZE"},
};

// By this system's number; ENOTSUP and EOPNOTSUPP are one on Linux.
const Number* find_number(int error) {
  const auto* found = std::ranges::find(kNumbers, error, &Number::native);
  return found == std::end(kNumbers) ? nullptr : found;
}

}  // namespace

const RuleText& text_of(Rule rule) { return kTexts.at(static_cast<size_t>(rule)); }

// For the program alone: Ringbolt's own words have this system's number too.
int number_of(const Profile& profile, int error) {
  const Number* known = profile.knobs.has_darwin_errno ? find_number(error) : nullptr;
  return known == nullptr ? error : known->darwin;
}

std::string name_of_error(const Profile& profile, int error) {
  const Number* known = find_number(error);
  const std::string name = known == nullptr ? fmt::format("errno {}", error) : known->name;
  return profile.knobs.has_darwin_errno && known != nullptr && known->native != known->darwin
             ? fmt::format("{}, {} on Darwin", name, known->darwin)
             : name;
}

std::string violation_text(const Profile& profile, Rule rule, const std::string& device, const std::string& what,
                           int error) {
  const RuleText& text = text_of(rule);
  return fmt::format("ringbolt: like {}: {}: {}{}\n  why: {}\n  fix: {} (docs/profiles.md, {})\n", profile.name, device,
                     what, error == 0 ? "" : ": refused with " + name_of_error(profile, error), text.why, text.fix,
                     text.name);
}

}  // namespace ringbolt::profile
