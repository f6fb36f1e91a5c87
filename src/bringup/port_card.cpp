#include "bringup/port_card.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/crc.h"

namespace ringbolt::bringup {
namespace {

constexpr uint32_t kMagic = 0x52425043;  // "RBPC"
// Raised with any change of the layout: all ranks run the same release, and say so if not.
constexpr uint16_t kVersion = 2;
// u32 magic, u16 version, u16 number of cards, u32 length of all, checksum included.
constexpr size_t kHeaderBytes = 12;
// CRC-32C at the end, over all that comes before it.
constexpr size_t kCrcBytes = 4;
constexpr uint8_t kHasRc = 1;
constexpr uint8_t kHasUc = 2;
constexpr uint8_t kCountsFrames = 4;
constexpr uint8_t kHasChannels = 8;
constexpr uint8_t kAllFlags = 15;

// Big-endian, as the rest of this format: the only one here that is.
class Writer {
 public:
  // Unsigned integers of 1 to 8 bytes.
  template <class T>
  void put(T value) {
    for (size_t i = sizeof value; i-- > 0;) {
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  template <class Range>
  void put_bytes(const Range& range) {
    for (const auto one : range) {
      bytes_.push_back(static_cast<std::byte>(one));
    }
  }
  void set_u32(size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) {
      bytes_[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
    }
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads from the front; once something was missing, everything is.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    uint64_t value = 0;
    for (const std::byte one : take(sizeof(T))) {
      value = value << 8U | static_cast<uint64_t>(one);
    }
    // 0 where something was missing. The caller looks at is_short() once at the end, before it believes any value.
    return static_cast<T>(value);
  }
  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) {
      is_short_ = true;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  bool is_short() const { return is_short_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool is_short_ = false;
};

bool is_mtu(uint32_t bytes) { return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096; }

/// What is wrong with a card; empty if nothing is.
// Asked by who writes (asserted) and by who reads (refused): both mean the same by a possible card.
std::string flaw_of(const PortCard& card) {
  if (card.device.empty() || card.device.size() > kMostDeviceName) {
    return fmt::format("a device's name of {} characters", card.device.size());
  }
  if (!std::all_of(card.device.begin(), card.device.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return "a device's name with odd characters";
  }
  if (card.port == 0) {
    return card.device + " has no port 0";
  }
  if (!is_mtu(card.mtu_bytes)) {
    return fmt::format("{} has an MTU of {} bytes", card.device, card.mtu_bytes);
  }
  if (card.gids.empty() || card.gids.size() > kMostCardGids) {
    return fmt::format("{} has {} GIDs", card.device, card.gids.size());
  }
  bool has_chosen = false;
  for (size_t i = 0; i < card.gids.size(); ++i) {
    // Ascending, so that each index stands once.
    if (is_empty(card.gids[i].gid) || (i > 0 && card.gids[i].index <= card.gids[i - 1].index)) {
      return fmt::format("{} has an empty GID, or GIDs out of order", card.device);
    }
    if (card.gids[i].type > GidType::kRoceV2) {
      return fmt::format("{} has a GID of an unknown type", card.device);
    }
    has_chosen = has_chosen || card.gids[i].index == card.gid_index;
  }
  return has_chosen ? std::string() : fmt::format("{} has no GID {}", card.device, card.gid_index);
}

std::string flaw_of(std::span<const PortCard> cards) {
  std::set<std::pair<std::string, uint8_t>> seen;
  for (const PortCard& card : cards) {
    if (std::string flaw = flaw_of(card); !flaw.empty()) {
      return flaw;
    }
    if (!seen.emplace(card.device, card.port).second) {
      return fmt::format("port {} of {} is there twice", card.port, card.device);
    }
  }
  return cards.size() > kMostCards ? fmt::format("{} ports", cards.size()) : std::string();
}

// docs/formats/port-card.md; get_card() reads in the same order.
void put_card(Writer& out, const PortCard& card) {
  out.put(static_cast<uint8_t>(card.device.size()));
  out.put_bytes(card.device);
  out.put(card.port);
  out.put(card.lid);
  // flaw_of() has made sure that it fits.
  out.put(static_cast<uint16_t>(card.mtu_bytes));
  out.put(card.rate_mbps);
  out.put(card.gid_index);
  out.put(static_cast<uint8_t>(card.gids.size()));
  for (const CardGid& one : card.gids) {
    out.put(one.index);
    out.put(static_cast<uint8_t>(one.type));
    out.put_bytes(one.gid);
  }
  const Capabilities& can = card.capabilities;
  out.put(static_cast<uint8_t>((can.has_rc ? kHasRc : 0) | (can.has_uc ? kHasUc : 0) |
                               (can.counts_frames ? kCountsFrames : 0) | (can.has_channels ? kHasChannels : 0)));
  out.put(can.most_queue_pairs);
  out.put(can.most_regions);
  out.put(can.most_work_requests);
  out.put(can.most_sge);
  out.put(can.most_message_bytes);
}

/// Nothing when a flag is set that this version does not know. Counts that lead beyond the end read as short.
std::optional<PortCard> get_card(Reader& in) {
  PortCard card;
  for (const std::byte one : in.take(in.get<uint8_t>())) {
    card.device += static_cast<char>(one);
  }
  card.port = in.get<uint8_t>();
  card.lid = in.get<uint16_t>();
  card.mtu_bytes = in.get<uint16_t>();
  card.rate_mbps = in.get<uint32_t>();
  card.gid_index = in.get<uint8_t>();
  const size_t n_gids = in.get<uint8_t>();
  for (size_t i = 0; i < n_gids && !in.is_short(); ++i) {
    CardGid& one = card.gids.emplace_back();
    one.index = in.get<uint8_t>();
    one.type = static_cast<GidType>(in.get<uint8_t>());
    const auto bytes = in.take(one.gid.size());
    std::transform(bytes.begin(), bytes.end(), one.gid.begin(), [](std::byte b) { return static_cast<uint8_t>(b); });
  }
  const auto flags = in.get<uint8_t>();
  Capabilities& can = card.capabilities;
  can.has_rc = (flags & kHasRc) != 0;
  can.has_uc = (flags & kHasUc) != 0;
  can.counts_frames = (flags & kCountsFrames) != 0;
  can.has_channels = (flags & kHasChannels) != 0;
  can.most_queue_pairs = in.get<uint32_t>();
  can.most_regions = in.get<uint32_t>();
  can.most_work_requests = in.get<uint32_t>();
  can.most_sge = in.get<uint32_t>();
  can.most_message_bytes = in.get<uint32_t>();
  return (flags & ~kAllFlags) == 0 ? std::optional(card) : std::nullopt;
}

// 0: bytes have no lines.
tl::unexpected<base::ParseError> refuse(std::string problem) {
  return base::refuse(0, "port cards: " + std::move(problem));
}

}  // namespace

const CardGid& PortCard::chosen() const {
  const auto found = std::find_if(gids.begin(), gids.end(), [&](const CardGid& one) { return one.index == gid_index; });
  RINGBOLT_ASSERT(found != gids.end());
  return *found;
}

// The length stands at byte 8, so that a reader can tell a cut card before it reads on.
std::vector<std::byte> emit_cards(std::span<const PortCard> cards) {
  RINGBOLT_ASSERT(flaw_of(cards).empty());
  Writer out;
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<uint16_t>(cards.size()));
  // The length, once it is known.
  out.put(uint32_t{0});
  for (const PortCard& card : cards) {
    put_card(out, card);
  }
  out.set_u32(8, static_cast<uint32_t>(out.bytes().size() + kCrcBytes));
  out.put(base::crc32c(0, out.bytes()));
  return out.take();
}

base::Parsed<std::vector<PortCard>> parse_cards(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes + kCrcBytes) {
    return refuse(fmt::format("{} bytes, fewer than a header", bytes.size()));
  }
  Reader in(bytes.first(bytes.size() - kCrcBytes));
  if (in.get<uint32_t>() != kMagic) {
    return refuse("they do not begin as such");
  }
  if (const auto version = in.get<uint16_t>(); version != kVersion) {
    return refuse(
        fmt::format("of version {}, this rank speaks {}: install the same Ringbolt on all", version, kVersion));
  }
  const size_t n_cards = in.get<uint16_t>();
  if (const auto length = in.get<uint32_t>(); length != bytes.size()) {
    return refuse(fmt::format("{} bytes that say they are {}", bytes.size(), length));
  }
  if (base::crc32c(0, bytes.first(bytes.size() - kCrcBytes)) != Reader(bytes.last(kCrcBytes)).get<uint32_t>()) {
    return refuse("the checksum does not fit");
  }
  std::vector<PortCard> cards;
  for (size_t i = 0; i < n_cards && !in.is_short(); ++i) {
    auto card = get_card(in);
    if (!card) {
      return refuse("an unknown capability");
    }
    cards.push_back(std::move(*card));
  }
  // Asked before anything is believed.
  if (in.is_short() || !in.is_at_end()) {
    return refuse(fmt::format("{} bytes that do not hold {} ports", bytes.size(), n_cards));
  }
  if (std::string flaw = flaw_of(cards); !flaw.empty()) {
    return refuse(std::move(flaw));
  }
  return cards;
}

}  // namespace ringbolt::bringup
