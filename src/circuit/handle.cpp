#include "circuit/handle.h"

#include <algorithm>

#include "base/byte_writer.h"
#include "base/crc.h"
#include "base/little_endian.h"

namespace ringbolt::circuit {
namespace {

constexpr uint32_t kHandleMagic = 0x4e424252;  // "RBBN"
// Handles do not outlive the processes that made them, so those of older versions are not read.
constexpr uint16_t kHandleVersion = 2;
constexpr size_t kTicketAt = kHandleBytes - kTicketBytes;
constexpr size_t kHandleChecksumAt = kTicketAt - sizeof(uint32_t);
// Magic, version, member, machine, port, number of addresses, listener; then addresses.
static_assert(4 + 2 + 8 + 8 + 2 + 1 + 8 + kMostHandleAddresses * sizeof(membership::Ip) <= kHandleChecksumAt);

}  // namespace

void emit(const Handle& handle, std::span<std::byte, kHandleBytes> to) {
  membership::Contact contact = handle.contact;
  contact.addresses.resize(std::min(contact.addresses.size(), kMostHandleAddresses));
  base::ByteWriter writer;
  writer.put(kHandleMagic);
  writer.put(kHandleVersion);
  emit(contact, writer);
  writer.put(handle.listener);
  std::ranges::fill(to, std::byte{});
  std::ranges::copy(writer.bytes(), to.begin());
  // Not over the ticket, which changes while the handle is in use. A checksum against accidents, no seal: who
  // connects is asked for the secret.
  base::put_le(std::span<std::byte>(to), kHandleChecksumAt, base::crc32c(0, to.first(kHandleChecksumAt)));
}

std::optional<Handle> parse_handle(std::span<const std::byte, kHandleBytes> bytes) {
  base::ByteReader reader(bytes.first(kHandleChecksumAt));
  const bool is_ours = reader.take<uint32_t>() == kHandleMagic && reader.take<uint16_t>() == kHandleVersion;
  if (!is_ours || base::get_le<uint32_t>(bytes, kHandleChecksumAt) != base::crc32c(0, bytes.first(kHandleChecksumAt))) {
    return std::nullopt;
  }
  Handle handle;
  handle.contact = membership::parse_contact(reader);
  handle.listener = reader.take<uint64_t>();
  return reader.is_sound() && handle.contact.member != 0 ? std::optional(handle) : std::nullopt;
}

uint64_t ticket_of(std::span<const std::byte, kHandleBytes> handle) {
  return base::get_le<uint64_t>(handle, kTicketAt);
}

void set_ticket(std::span<std::byte, kHandleBytes> handle, uint64_t ticket) {
  base::put_le(std::span<std::byte>(handle), kTicketAt, ticket);
}

}  // namespace ringbolt::circuit
