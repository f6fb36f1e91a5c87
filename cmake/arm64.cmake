# The preset `arm64`: Debian's cross compiler, ARM64 libraries from a folder of their own (scripts/debian-sysroot makes it),
# and QEMU, which runs the programs on this machine.
set(RINGBOLT_ARM64_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot CACHE PATH
    "Where the ARM64 libraries lie, as below /")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGBOLT_ARM64_SYSROOT)
get_filename_component(sysroot ${RINGBOLT_ARM64_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${sysroot}/packages AND NOT EXISTS ${sysroot}/usr/lib)
  message(FATAL_ERROR "no ARM64 libraries in ${sysroot}: run scripts/setup-debian arm64")
endif()
set(triplet aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/sysroot.cmake)

# A script, so that tests that start programs of their own need but one word for it.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../scripts/arm64-run)
