# The preset `arm64`: Debian's cross compiler, ARM64 libraries from a folder of their own (scripts/arm64-sysroot makes it),
# and QEMU, which runs the programs on this machine.
set(RINGBOLT_ARM64_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot CACHE PATH
    "Where the ARM64 libraries lie, as below /")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGBOLT_ARM64_SYSROOT)
get_filename_component(sysroot ${RINGBOLT_ARM64_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${sysroot}/packages AND NOT EXISTS ${sysroot}/usr/lib)
  message(FATAL_ERROR "no ARM64 libraries in ${sysroot}: run scripts/setup-debian arm64")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${sysroot})

# Programs that run while building are this machine's; what is compiled against and linked is ARM64's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${sysroot}/usr/share/pkgconfig)

# A script, so that tests that start programs of their own need but one word for it.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../scripts/arm64-run)
