/* What kernels for Hopper's warpgroup products share (compute capability 9.0a): barriers in shared memory, bulk copies,
 * and the way in which an operand lies there. Without swizzling, rows go in eights, a row's 32 bytes in two halves:
 *
 *   offset(row, byte) = (row / 8) * 256 + (byte / 16) * 128 + (row % 8) * 16 + byte % 16 */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ static inline uint32_t shared_address(const void *p) { return (uint32_t) __cvta_generic_to_shared(p); }

/* The descriptor by which wgmma finds an operand that begins at this address of shared memory. */
__device__ static inline uint64_t operand_descriptor(const void *shared)
{
  return (uint64_t) ((shared_address(shared) & 0x3ffff) >> 4) | (uint64_t) (128 >> 4) << 16 |
         (uint64_t) (256 >> 4) << 32;
}

__device__ static inline void barrier_init(uint64_t *barrier, uint32_t count)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

/* After the last barrier_init(), before others of the block use them. */
__device__ static inline void barriers_made() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ static inline void barrier_arrive(uint64_t *barrier)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* Arrives, and announces the bytes of the copies to come. */
__device__ static inline void barrier_expect(uint64_t *barrier, uint32_t bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ static inline void barrier_wait(uint64_t *barrier, uint32_t phase)
{
  asm volatile("{.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
                   shared_address(barrier)),
               "r"(phase)
               : "memory");
}

__device__ static inline void bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *barrier)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/* Registers, and with fence_operands() what threads wrote to shared memory, before a product reads them. */
__device__ static inline void product_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ static inline void fence_operands() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ static inline void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Waits until all but the last PENDING commits are complete. */
template <int PENDING> __device__ static inline void product_wait()
{
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving accesses to the accumulators over this point. */
template <int N> __device__ static inline void hold(uint32_t (&c)[N])
{
#  pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+r"(c[i])::"memory");
}

/* Sixteen accumulators as operands of a product, `c` by name. */
#  define R4(i) "+r"(c[i]), "+r"(c[i + 1]), "+r"(c[i + 2]), "+r"(c[i + 3])
#  define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)

#endif
