/* The screen of fused_hopper.cu, as one thread makes it from counts in its registers.
 *
 * With k of a cell's m rows in class c and N_c rows of the class that count for the pair (all of them where no value is
 * missing), n times the information is
 *
 *   Σ_c (Σ k log2(k w_c) - N_c log2(N_c w_c)) - (Σ m log2(m w) - N log2(N w)),     w_c = cells / n_c,   w = cells / n
 *
 * whatever the weights are; with these, logarithms are small. Without missing values the terms of N_c and N cancel, and
 * the last sum is at least what it is for independent attributes, Σ a log2(a la / n) + Σ b log2(b lb / n) over their
 * levels: a pair that is behind the threshold even so needs no logarithms of m.
 *
 * Classes are counted one after the other without clearing the accumulators, so that after the last they hold m; the
 * counts before a class wait in shared memory of the thread's own. */
#pragma once

extern "C" {
#include "mi/pairs/cuda/counted.cuh"
}

/* How many groups of eight attributes of side b a warpgroup counts against 64 of side a: so many that a thread has
 * about 64 counts. */
constexpr int octets_of(int pa, int pb)
{
  int octets = 8;
  while (octets > 1 && (pa * pb * 4 * octets > 72 || pb * octets > 8)) octets /= 2;
  return octets;
}

/* PA planes of a, MA: one for each level, since values are missing; b alike. */
template <int PA_, bool MA_, int PB_, bool MB_> struct fused_shape {
  static constexpr int PA = PA_, PB = PB_, LA = PA_ + !MA_, LB = PB_ + !MB_, OCTETS = octets_of(PA_, PB_);
  static constexpr bool MA = MA_, MB = MB_, VARY = MA_ || MB_;
  static constexpr int COUNTS = OCTETS * PB_ * 4; /* of a plane of a: [eight][plane of b][pair] */
};

/* Where the margins of a thread's attributes begin: [plane][room]. Not used where the other side has missing values. */
struct fused_margins {
  const float *a, *b;
  uint32_t room_a, room_b;
};

/* The sums over an attribute of a with two of b. */
struct fused_sums {
  float joint[2], one[2], other[2], rows[2];
};

/* k log2(k w) */
__device__ static inline float fused_term(float k, float w, float sum)
{
  const float y = fmaf(k, w, 1e-30f);
#ifdef __CUDA_ARCH__
  float log;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"(y));
#else
  const float log = log2f(y);
#endif
  return fmaf(k, log, sum);
}

/* A whole number below 2^23. */
__device__ static inline float fused_float(uint32_t k)
{
#ifdef __CUDA_ARCH__
  return __uint_as_float(k + 0x4b000000u) - 8388608.0f;
#else
  return (float) k;
#endif
}

/* The sums of a class, whose counts are what was added since `before`, which is brought up to date; or, FINAL, of all
 * rows. EACH: of both attributes by themselves, too. The pairs are those of the attribute `half` of a in one eight. */
template <class S, bool EACH, bool FINAL>
__device__ static inline fused_sums fused_class(const uint32_t (&c)[S::PA][S::COUNTS], uint2 *before, uint32_t stride,
                                                int eight, int half, fused_margins margins, float all, float w)
{
  fused_sums out = { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } };
  float above[S::PB][2] = {}, corner = all, column[S::LB][2] = {}, row[2] = { 0, 0 };
  const auto add = [&](int i, int y, float k) {
    out.joint[i] = fused_term(k, w, out.joint[i]);
    if (S::VARY) out.rows[i] += k;
    if (EACH) {
      row[i] += k;
      column[y][i] += k;
    }
  };
  const auto end_row = [&] {
    if (EACH)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        out.one[i] = fused_term(row[i], w, out.one[i]);
        row[i] = 0;
      }
  };
#pragma unroll
  for (int x = 0; x < S::PA; x++) {
    const float of_a = S::MB ? 0 : margins.a[x * margins.room_a + 8 * half];
    float left[2] = { of_a, of_a };
    corner -= of_a;
#pragma unroll
    for (int y = 0; y < S::PB; y++) {
      const int at = 4 * (eight * S::PB + y) + 2 * half;
      uint2 was = { 0, 0 };
      if (!FINAL) {
        uint2 *const mine = before + (uint32_t) (x * S::COUNTS + at) / 2 * stride;
        was = *mine;
        *mine = make_uint2(c[x][at], c[x][at + 1]);
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float k = fused_float(c[x][at + i] - (i ? was.y : was.x));
        if (!S::MB) left[i] -= k;
        if (!S::MA) above[y][i] += k;
        add(i, y, k);
      }
    }
    if (!S::MB)
#pragma unroll
      for (int i = 0; i < 2; i++) add(i, S::LB - 1, left[i]);
    end_row();
  }
  if (!S::MA) {
    float last[2] = { corner, corner };
#pragma unroll
    for (int y = 0; y < S::PB; y++) {
      const float2 of_b = *(const float2 *) &margins.b[y * margins.room_b + 8 * eight];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float k = (i ? of_b.y : of_b.x) - above[y][i];
        last[i] -= k;
        add(i, y, k);
      }
    }
    if (!S::MB)
#pragma unroll
      for (int i = 0; i < 2; i++) add(i, S::LB - 1, last[i]);
    end_row();
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (EACH)
#pragma unroll
      for (int y = 0; y < S::LB; y++) out.other[i] = fused_term(column[y][i], w, out.other[i]);
    if (!S::VARY) continue;
    const float rows = fused_term(out.rows[i], w, 0);
    out.joint[i] -= rows;
    if (EACH) {
      out.one[i] -= rows;
      out.other[i] -= rows;
    }
  }
  return out;
}

/* The thresholds, in bits, and how far n times an information may be off. */
struct fused_thresholds {
  float mi, gain, slack;
};

/* Whether a pair may reach the thresholds. joint: the bound of n times its information; own: n times what its members
 * say alone; n: rows that count. */
__device__ static inline bool fused_passes(const fused_thresholds &thresholds, float joint, float own, float n)
{
  if (joint < thresholds.mi * n - thresholds.slack) return false;
  return !(thresholds.gain > -INFINITY) || !(fmaxf(joint, 0.0f) - own < thresholds.gain * n - 3 * thresholds.slack);
}

/* How far n times an information may be off, n being all rows: twice the error of counted.cuh, as the terms of N_c and
 * N, or those of an attribute's levels, come on top. */
static inline float fused_slack(uint32_t cells, uint32_t classes, double n)
{
  return (float) (2 * weft_products_error(cells, classes) * n + WEFT_PRODUCTS_LITTLE);
}
