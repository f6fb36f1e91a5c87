#include "device/memory.h"

#include <linux/mman.h>  // MADV_POPULATE_WRITE: the C library has it from glibc 2.35 on
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "device/explanations.h"

namespace ringbolt::device {
namespace {

constexpr const char* kRegister = "ibv_reg_mr";  // and those that register in other words
constexpr uint32_t kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                  IBV_ACCESS_HUGETLB;

int check_access(uint32_t access) {
  const uint32_t wanted = access & ~static_cast<uint32_t>(kHintAccess);
  if ((wanted & IBV_ACCESS_ON_DEMAND) != 0) {
    return base::refused(EOPNOTSUPP, kRegister, [&] { return why_access_refused(access); });
  }
  const bool writes_remotely = (wanted & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if ((wanted & ~kKnownAccess) != 0 || (writes_remotely && (wanted & IBV_ACCESS_LOCAL_WRITE) == 0)) {
    return base::refused(EINVAL, kRegister, [&] { return why_access_refused(access); });
  }
  return 0;
}

/// Registration pins pages on a NIC, so it fails for addresses where nothing is mapped; a software device has to look.
int check_mapped(uint64_t address, uint64_t length) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // A byte a page, whatever it says: mincore(2) fails with ENOMEM where nothing is mapped.
  std::array<unsigned char, 4096> resident{};
  if (length == 0) {
    return 0;
  }
  uint64_t at = address / page * page;
  const uint64_t end = address + length;
  while (at < end) {
    const uint64_t step = std::min<uint64_t>(end - at, page * resident.size());
    if (mincore(reinterpret_cast<void*>(at), step, resident.data()) != 0) {
      return base::refused(errno == ENOMEM ? EFAULT : errno, kRegister,
                           [&] { return why_memory_refused(address, length, false); });
    }
    at += step;
  }
  return 0;
}

/// Pinning for writing fails on memory that the program may only read. The first and the last page tell, for all but
/// registrations over several mappings; touching every page would make memory of what the program never uses.
int check_writable(uint64_t address, uint64_t length) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  static const bool kernel_can_tell = [page] {
    void* probe = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool works = probe != MAP_FAILED && madvise(probe, page, MADV_POPULATE_WRITE) == 0;
    if (probe != MAP_FAILED) {
      munmap(probe, page);
    }
    return works;
  }();
  if (length == 0 || !kernel_can_tell) {
    return 0;
  }
  for (const uint64_t at : {address, address + length - 1}) {
    // EINVAL: the mapping has not the right to be written (madvise(2)). Other errors tell nothing of that.
    if (madvise(reinterpret_cast<void*>(at / page * page), page, MADV_POPULATE_WRITE) != 0 && errno == EINVAL) {
      return base::refused(EFAULT, kRegister, [&] { return why_memory_refused(address, length, true); });
    }
  }
  return 0;
}

int check_memory(uint64_t address, uint64_t length, uint32_t access) {
  const int error = check_mapped(address, length);
  return error == 0 && (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? check_writable(address, length) : error;
}

bool is_wrapped(const ProtectionDomain& pd) {
  return pd.context.port().profile.knobs.wrap_4_gib == profile::Wrap4Gib::corrupt;
}

/// Over an arena it has one more user then; drop_arena() when it is not wanted any more.
link::Region describe(ProtectionDomain& pd, uint64_t address, uint64_t length, uint64_t iova, uint32_t access) {
  link::Region region;
  region.first = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
  region.length = length;
  region.host_first = address;
  region.access = access;
  region.pd_key = pd.key;
  if (const auto place = pd.context.process().arenas().use(address, length)) {
    region.arena_id = place->arena_id;
    region.arena_offset = place->offset;
  }
  return region;
}

/// What was under the key goes: for whoever uses it still.
void note_gone(PeerNotes& notes, uint32_t key, const link::Region& region) noexcept try {
  PeerNotes::Note note;
  note.kind = PeerNotes::Kind::region_gone;
  note.number = key;
  note.text = fmt::format("its region of {} bytes at {:#x} was deregistered at {}", region.length, region.first,
                          base::calling_place());
  notes.write(note);
} catch (const std::bad_alloc&) {  // then nobody hears of it
}

/// The region of a binding, if it allows it.
bool find_bindable(Process& process, uint32_t pd_key, const WindowBinding& binding, link::Region& region) {
  const bool writes = (binding.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return process.regions().find(binding.region_key, region) && region.pd_key == pd_key &&
         (region.access & IBV_ACCESS_MW_BIND) != 0 && region.holds(binding.address, binding.length) &&
         (!writes || (region.access & IBV_ACCESS_LOCAL_WRITE) != 0);
}

}  // namespace

base::Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create(ProtectionDomain& pd, uint64_t address,
                                                                 uint64_t length, uint64_t iova, uint32_t access) {
  if (const int error = check_access(access)) {
    return base::fail(error);
  }
  // Sums that wrap: nothing behind this checks bounds again.
  if (address + length < address || iova + length < iova) {
    return base::fail(
        base::refused(EINVAL, kRegister, [&] { return why_memory_refused(std::max(address, iova), length, false); }));
  }
  if (const int error = check_memory(address, length, access)) {
    return base::fail(error);
  }
  const link::Region region = describe(pd, address, length, iova, access);
  const auto key = pd.context.process().regions().add(region);
  if (!key) {
    pd.context.process().drop_arena(region.arena_id);
    return base::fail(key.error().value);
  }
  try {
    if (pd.context.port().profile.knobs.refuses_late_regions) {
      pd.context.process().region_ages().add(*key);
    }
    return std::unique_ptr<MemoryRegion>(new MemoryRegion(pd, region, *key));
  } catch (const std::bad_alloc&) {
    pd.context.process().regions().hide(*key);
    pd.context.process().regions().release(*key);
    pd.context.process().drop_arena(region.arena_id);
    return base::fail(ENOMEM);
  }
}

MemoryRegion::MemoryRegion(ProtectionDomain& pd, const link::Region& region, uint32_t key)
    : pd_(&pd), region_(region), key_(key), number_(pd.regions_made.fetch_add(1) + 1) {
  pd_->users.fetch_add(1, std::memory_order_relaxed);
}

MemoryRegion::~MemoryRegion() {
  Process& process = pd_->context.process();
  if (process.is_abandoned()) {
    return;  // in a forked child: the table is the parent's
  }
  if (PeerNotes* const notes = process.peer_notes()) {
    note_gone(*notes, key_, region_);
  }
  process.regions().hide(key_);
  process.region_ages().remove(key_);
  process.wait_for_accesses(key_);
  process.wait_for_own_copies(is_wrapped(*pd_));
  process.regions().release(key_);
  process.drop_arena(region_.arena_id);
  pd_->users.fetch_sub(1, std::memory_order_relaxed);
}

bool MemoryRegion::has_windows() const { return pd_->context.process().windows().has_window(key_); }

int MemoryRegion::change(int flags, ProtectionDomain* pd, uint64_t address, uint64_t length, uint32_t access) {
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool changes_place = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  ProtectionDomain& new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? *pd : *pd_;
  const uint32_t new_access = changes_access ? access : region_.access;
  if (const int error = check_access(new_access)) {
    return error;
  }
  if (changes_place) {
    if (address + length < address) {
      return base::refused(EINVAL, kRegister, [&] { return why_memory_refused(address, length, false); });
    }
    if (const int error = check_memory(address, length, new_access)) {
      return error;
    }
  } else if ((new_access & ~region_.access & IBV_ACCESS_LOCAL_WRITE) != 0) {
    if (const int error = check_memory(region_.host_first, region_.length, new_access)) {
      return error;
    }
  }
  const link::Region region =
      describe(new_pd, changes_place ? address : region_.host_first, changes_place ? length : region_.length,
               changes_place ? address : region_.first, new_access);
  Process& process = pd_->context.process();
  process.regions().hide(key_);
  process.wait_for_accesses(key_);
  process.wait_for_own_copies(is_wrapped(*pd_));
  process.regions().publish(key_, region);
  process.drop_arena(region_.arena_id);
  new_pd.users.fetch_add(1, std::memory_order_relaxed);
  pd_->users.fetch_sub(1, std::memory_order_relaxed);
  number_ = pd_ == &new_pd ? number_ : new_pd.regions_made.fetch_add(1) + 1;
  pd_ = &new_pd;
  region_ = region;
  return 0;
}

base::Result<std::unique_ptr<MemoryWindow>> MemoryWindow::create(ProtectionDomain& pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    return base::fail(base::refused(EINVAL, "ibv_alloc_mw", [&] {
      return base::Explanation{fmt::format("there is no memory window of type {}", static_cast<int>(type)),
                               "take IBV_MW_TYPE_1 or IBV_MW_TYPE_2"};
    }));
  }
  Process& process = pd.context.process();
  // Until it is bound the key allows nothing: a region without bytes and without access.
  link::Region nothing;
  nothing.pd_key = pd.key;
  const auto key = process.regions().add(nothing);
  if (!key) {
    return base::fail(key.error().value);
  }
  process.regions().hide(*key);
  try {
    process.windows().add(*key, pd.key);
    std::unique_ptr<MemoryWindow> window(new MemoryWindow(pd, type, *key));
    pd.users.fetch_add(1, std::memory_order_relaxed);
    return window;
  } catch (const std::bad_alloc&) {
    process.windows().remove(*key);
    process.regions().release(*key);
    return base::fail(ENOMEM);
  }
}

MemoryWindow::~MemoryWindow() {
  Process& process = pd_.context.process();
  if (process.is_abandoned()) {
    return;
  }
  process.regions().hide(key_);
  if (const uint32_t open_key = process.windows().remove(key_)) {
    process.wait_for_accesses(open_key);
  }
  process.regions().release(key_);
  pd_.users.fetch_sub(1, std::memory_order_relaxed);
}

bool may_bind_window(Process& process, uint32_t pd_key, const WindowBinding& binding) {
  link::Region region;
  return process.windows().holds(binding.key, pd_key) &&
         (binding.length == 0 || find_bindable(process, pd_key, binding, region));
}

uint32_t close_window(Process& process, uint32_t key) {
  const uint32_t open_key = process.windows().close(key);
  if (open_key != 0) {
    process.regions().hide(open_key);
  }
  return open_key;
}

bool bind_window(Process& process, uint32_t pd_key, const WindowBinding& binding) {
  if (binding.length == 0) {
    return true;
  }
  link::Region region;
  if (!find_bindable(process, pd_key, binding, region)) {
    return false;
  }
  link::Region window = region;
  const uint64_t skipped = binding.address - region.first;
  window.host_first += skipped;
  window.arena_offset += skipped;
  window.first = (binding.access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : binding.address;
  window.length = binding.length;
  window.access = binding.access;
  window.bound_qpn = binding.bound_qpn;
  process.windows().open(binding.key, binding.region_key);
  process.regions().publish(binding.key, window);
  return true;
}

bool invalidate_window(Process& process, uint32_t qpn, uint32_t key) {
  link::Region region;
  if (!process.regions().find(key, region) || region.bound_qpn != qpn) {
    return false;
  }
  static_cast<void>(close_window(process, key));
  return true;
}

}  // namespace ringbolt::device
