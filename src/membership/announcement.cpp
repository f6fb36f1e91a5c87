#include "membership/announcement.h"

#include <algorithm>

namespace ringbolt::membership {

void emit(const Contact& contact, base::ByteWriter& writer) {
  writer.put(contact.member);
  writer.put(contact.machine);
  writer.put(contact.port);
  // Cut, not refused: an announcement that a machine with many addresses could not make would hide it.
  const size_t n = std::min(contact.addresses.size(), kMostAddresses);
  writer.put(static_cast<uint8_t>(n));
  for (size_t i = 0; i < n; ++i) {
    writer.put_bytes(std::as_bytes(std::span(contact.addresses[i])));
  }
}

/// Of too many addresses the first ones.
Contact parse_contact(base::ByteReader& reader) {
  Contact contact;
  contact.member = reader.take<uint64_t>();
  contact.machine = reader.take<uint64_t>();
  contact.port = reader.take<uint16_t>();
  const auto n = reader.take<uint8_t>();
  for (size_t i = 0; i < n && reader.is_sound(); ++i) {
    // Those beyond kMostAddresses are read over, or what follows would be misread.
    const std::span<const std::byte> bytes = reader.take_bytes(sizeof(Ip));
    if (i < kMostAddresses && reader.is_sound()) {
      std::ranges::transform(bytes, contact.addresses.emplace_back().begin(),
                             [](std::byte byte) { return static_cast<uint8_t>(byte); });
    }
  }
  return contact;
}

std::vector<std::byte> emit(const Announcement& announcement) {
  base::ByteWriter writer;
  emit(announcement.contact, writer);
  writer.put(announcement.version);
  writer.put(announcement.node);
  writer.put_text(std::string_view(announcement.name).substr(0, kMostNameBytes));
  const size_t n = std::min(announcement.adjacent.size(), kMostMembers);
  writer.put(static_cast<uint16_t>(n));
  for (size_t i = 0; i < n; ++i) {
    writer.put(announcement.adjacent[i]);
  }
  writer.put_bytes(announcement.details);
  return std::move(writer).bytes();
}

base::Parsed<Announcement> parse_announcement(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  Announcement announcement;
  announcement.contact = parse_contact(reader);
  announcement.version = reader.take<uint32_t>();
  announcement.node = reader.take<uint64_t>();
  announcement.name = reader.take_text(kMostNameBytes);
  const auto n = reader.take<uint16_t>();
  // n is a stranger's: the loop ends with the bytes.
  for (size_t i = 0; i < n && reader.is_sound(); ++i) {
    announcement.adjacent.push_back(reader.take<uint64_t>());
  }
  if (!reader.is_sound() || n > kMostMembers) {
    return base::refuse(0, "an announcement that is cut short");
  }
  if (announcement.contact.member == 0) {
    return base::refuse(0, "an announcement of nobody");
  }
  if (reader.rest().size() > kMostDetailBytes) {
    return base::refuse(0, "an announcement that is too long");
  }
  // The rest of the frame, whose length the frame has told; members above this layer read it.
  announcement.details.assign(reader.rest().begin(), reader.rest().end());
  return announcement;
}

}  // namespace ringbolt::membership
