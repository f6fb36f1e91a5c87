#include "link/messages.h"

#include <algorithm>
#include <type_traits>

#include "base/assert.h"
#include "link/rendezvous.h"

namespace ringbolt::link {
namespace {

// Offsets of the layout in docs/formats/rendezvous.md. All integers are little-endian.
constexpr std::array<uint8_t, 4> kMagic{'R', 'B', 'L', 'K'};
// From the command, which may be of another release: without a header, so that it stays as it is.
constexpr std::array<uint8_t, 8> kPoke{'R', 'B', 'P', 'O', 'K', 'E', '1', '\n'};

struct HeaderAt {
  static constexpr size_t magic = 0, version = 4, kind = 6, length = 8, reserved = 12, end = 16;
};
struct HelloAt {
  static constexpr size_t slot = 16, reserved = 20, incarnation = 24, nonce_address = 32, nonce = 40, end = 48;
};
struct OfferAt {
  static constexpr size_t source_qpn = 16, target_qpn = 20, qp_type = 24, pd_key = 28, nonce = 32, source_gid = 40,
                          target_gid = 56, receive_queue = 72, receive_generation = 76, send_queue = 80,
                          send_generation = 84, mark = 88, receive_channel = 92, send_channel = 96, reserved = 100,
                          end = 104;
};
struct WithdrawAt {
  static constexpr size_t source_qpn = 16, target_qpn = 20, nonce = 24, end = 32;
};
struct ArenaAt {
  static constexpr size_t arena_id = 16, reserved = 20, length_bytes = 24, end = 32;
};
struct ReleaseAt {
  static constexpr size_t arena_id = 16, reserved = 20, end = 24;
};
struct RefuseAt {
  static constexpr size_t source_qpn = 16, target_qpn = 20, nonce = 24, error = 32, reserved = 36, end = 40;
};
struct ByeAt {
  static constexpr size_t end = HeaderAt::end;
};
static_assert(OfferAt::end <= kMaxMessageBytes && HelloAt::end <= kMaxMessageBytes);

enum class Kind : uint16_t { hello = 1, offer = 2, withdraw = 3, arena = 4, bye = 5, release = 6, refuse = 7 };

using Out = std::span<std::byte, kMaxMessageBytes>;
using In = std::span<const std::byte>;

template <class T>
void put(Out out, size_t at, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[at + i] = static_cast<std::byte>((uint64_t{value} >> (8 * i)) & 0xffU);
  }
}

template <size_t N>
void put(Out out, size_t at, const std::array<uint8_t, N>& bytes) {
  std::transform(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(at),
                 [](uint8_t byte) { return std::byte{byte}; });
}

/// Precondition: the message's length was checked.
template <class T>
T get(In in, size_t at) {
  static_assert(std::is_unsigned_v<T>);
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<uint64_t>(in[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

template <size_t N>
std::array<uint8_t, N> get_bytes(In in, size_t at) {
  std::array<uint8_t, N> bytes{};
  for (size_t i = 0; i < N; ++i) {
    bytes[i] = std::to_integer<uint8_t>(in[at + i]);
  }
  return bytes;
}

size_t put_header(Out out, Kind kind, size_t length) {
  std::fill(out.begin(), out.end(), std::byte{0});
  put(out, HeaderAt::magic, kMagic);
  put(out, HeaderAt::version, static_cast<uint16_t>(kRendezvousVersion));
  put(out, HeaderAt::kind, static_cast<uint16_t>(kind));
  put(out, HeaderAt::length, static_cast<uint32_t>(length));
  return length;
}

struct Emitter {
  Out out;

  size_t operator()(const Hello& hello) const {
    RINGBOLT_ASSERT(hello.slot < kSlotCount);
    const size_t length = put_header(out, Kind::hello, HelloAt::end);
    put(out, HelloAt::slot, hello.slot);
    put(out, HelloAt::incarnation, hello.incarnation);
    put(out, HelloAt::nonce_address, hello.nonce_address);
    put(out, HelloAt::nonce, hello.nonce);
    return length;
  }
  size_t operator()(const Offer& offer) const {
    const size_t length = put_header(out, Kind::offer, OfferAt::end);
    put(out, OfferAt::source_qpn, offer.source_qpn);
    put(out, OfferAt::target_qpn, offer.target_qpn);
    put(out, OfferAt::qp_type, offer.qp_type);
    put(out, OfferAt::pd_key, offer.pd_key);
    put(out, OfferAt::nonce, offer.nonce);
    put(out, OfferAt::source_gid, offer.source_gid);
    put(out, OfferAt::target_gid, offer.target_gid);
    put(out, OfferAt::receive_queue, offer.receive_queue.index);
    put(out, OfferAt::receive_generation, offer.receive_queue.generation);
    put(out, OfferAt::send_queue, offer.send_queue.index);
    put(out, OfferAt::send_generation, offer.send_queue.generation);
    put(out, OfferAt::mark, offer.mark);
    put(out, OfferAt::receive_channel, offer.receive_channel);
    put(out, OfferAt::send_channel, offer.send_channel);
    return length;
  }
  size_t operator()(const Withdraw& withdraw) const {
    const size_t length = put_header(out, Kind::withdraw, WithdrawAt::end);
    put(out, WithdrawAt::source_qpn, withdraw.source_qpn);
    put(out, WithdrawAt::target_qpn, withdraw.target_qpn);
    put(out, WithdrawAt::nonce, withdraw.nonce);
    return length;
  }
  size_t operator()(const Arena& arena) const {
    const size_t length = put_header(out, Kind::arena, ArenaAt::end);
    put(out, ArenaAt::arena_id, arena.arena_id);
    put(out, ArenaAt::length_bytes, arena.length_bytes);
    return length;
  }
  size_t operator()(const Release& release) const {
    const size_t length = put_header(out, Kind::release, ReleaseAt::end);
    put(out, ReleaseAt::arena_id, release.arena_id);
    return length;
  }
  size_t operator()(const Refuse& refuse) const {
    const size_t length = put_header(out, Kind::refuse, RefuseAt::end);
    put(out, RefuseAt::source_qpn, refuse.source_qpn);
    put(out, RefuseAt::target_qpn, refuse.target_qpn);
    put(out, RefuseAt::nonce, refuse.nonce);
    put(out, RefuseAt::error, refuse.error);
    return length;
  }
  size_t operator()(const Bye&) const { return put_header(out, Kind::bye, ByeAt::end); }
  size_t operator()(const Poke&) const {
    put(out, 0, kPoke);
    return kPoke.size();
  }
};

std::optional<Message> parse_hello(In in) {
  Hello hello;
  hello.slot = get<uint32_t>(in, HelloAt::slot);
  hello.incarnation = get<uint64_t>(in, HelloAt::incarnation);
  hello.nonce_address = get<uint64_t>(in, HelloAt::nonce_address);
  hello.nonce = get<uint64_t>(in, HelloAt::nonce);
  if (hello.slot >= kSlotCount || get<uint32_t>(in, HelloAt::reserved) != 0) {
    return std::nullopt;
  }
  return hello;
}

// Indices are checked here; queue pair numbers and nonces by who knows queue pairs.
std::optional<Message> parse_offer(In in) {
  Offer offer;
  offer.source_qpn = get<uint32_t>(in, OfferAt::source_qpn);
  offer.target_qpn = get<uint32_t>(in, OfferAt::target_qpn);
  offer.qp_type = get<uint32_t>(in, OfferAt::qp_type);
  offer.pd_key = get<uint32_t>(in, OfferAt::pd_key);
  offer.nonce = get<uint64_t>(in, OfferAt::nonce);
  offer.source_gid = get_bytes<16>(in, OfferAt::source_gid);
  offer.target_gid = get_bytes<16>(in, OfferAt::target_gid);
  offer.receive_queue = {get<uint32_t>(in, OfferAt::receive_queue), get<uint32_t>(in, OfferAt::receive_generation)};
  offer.send_queue = {get<uint32_t>(in, OfferAt::send_queue), get<uint32_t>(in, OfferAt::send_generation)};
  offer.mark = get<uint32_t>(in, OfferAt::mark);
  offer.receive_channel = get<uint32_t>(in, OfferAt::receive_channel);
  offer.send_channel = get<uint32_t>(in, OfferAt::send_channel);
  if (offer.receive_queue.index >= kWakeQueues || offer.send_queue.index >= kWakeQueues || offer.mark >= kMarks ||
      get<uint32_t>(in, OfferAt::reserved) != 0) {
    return std::nullopt;
  }
  return offer;
}

Withdraw parse_withdraw(In in) {
  Withdraw withdraw;
  withdraw.source_qpn = get<uint32_t>(in, WithdrawAt::source_qpn);
  withdraw.target_qpn = get<uint32_t>(in, WithdrawAt::target_qpn);
  withdraw.nonce = get<uint64_t>(in, WithdrawAt::nonce);
  return withdraw;
}

std::optional<Message> parse_arena(In in) {
  Arena arena;
  arena.arena_id = get<uint32_t>(in, ArenaAt::arena_id);
  arena.length_bytes = get<uint64_t>(in, ArenaAt::length_bytes);
  if (get<uint32_t>(in, ArenaAt::reserved) != 0) {
    return std::nullopt;
  }
  return arena;
}

std::optional<Message> parse_release(In in) {
  if (get<uint32_t>(in, ReleaseAt::reserved) != 0) {
    return std::nullopt;
  }
  return Release{get<uint32_t>(in, ReleaseAt::arena_id)};
}

std::optional<Message> parse_refuse(In in) {
  if (get<uint32_t>(in, RefuseAt::reserved) != 0) {
    return std::nullopt;
  }
  return Refuse{get<uint32_t>(in, RefuseAt::source_qpn), get<uint32_t>(in, RefuseAt::target_qpn),
                get<uint64_t>(in, RefuseAt::nonce), get<uint32_t>(in, RefuseAt::error)};
}

bool is_header_valid(In in) {
  return in.size() >= HeaderAt::end && get_bytes<4>(in, HeaderAt::magic) == kMagic &&
         get<uint16_t>(in, HeaderAt::version) == kRendezvousVersion &&
         get<uint32_t>(in, HeaderAt::length) == in.size() && get<uint32_t>(in, HeaderAt::reserved) == 0;
}

struct DescriptorCounter {
  size_t operator()(const Hello&) const { return 3; }
  size_t operator()(const Offer& offer) const {
    return 1U + (offer.receive_channel != 0 ? 1U : 0U) +
           (offer.send_channel != 0 && offer.send_channel != offer.receive_channel ? 1U : 0U);
  }
  size_t operator()(const Arena&) const { return 1; }
  size_t operator()(const Withdraw&) const { return 0; }
  size_t operator()(const Release&) const { return 0; }
  size_t operator()(const Refuse&) const { return 0; }
  size_t operator()(const Bye&) const { return 0; }
  size_t operator()(const Poke&) const { return 0; }
};

}  // namespace

size_t descriptor_count(const Message& message) { return std::visit(DescriptorCounter{}, message); }

size_t emit(const Message& message, std::span<std::byte, kMaxMessageBytes> out) {
  return std::visit(Emitter{out}, message);
}

std::optional<Message> parse(std::span<const std::byte> bytes) {
  if (bytes.size() == kPoke.size()) {
    return get_bytes<8>(bytes, 0) == kPoke ? std::optional<Message>(Poke{}) : std::nullopt;
  }
  if (!is_header_valid(bytes)) {
    return std::nullopt;
  }
  const size_t length = bytes.size();
  switch (static_cast<Kind>(get<uint16_t>(bytes, HeaderAt::kind))) {
    case Kind::hello:
      return length == HelloAt::end ? parse_hello(bytes) : std::nullopt;
    case Kind::offer:
      return length == OfferAt::end ? parse_offer(bytes) : std::nullopt;
    case Kind::withdraw:
      return length == WithdrawAt::end ? std::optional<Message>(parse_withdraw(bytes)) : std::nullopt;
    case Kind::arena:
      return length == ArenaAt::end ? parse_arena(bytes) : std::nullopt;
    case Kind::release:
      return length == ReleaseAt::end ? parse_release(bytes) : std::nullopt;
    case Kind::refuse:
      return length == RefuseAt::end ? parse_refuse(bytes) : std::nullopt;
    case Kind::bye:
      return length == ByeAt::end ? std::optional<Message>(Bye{}) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ringbolt::link
