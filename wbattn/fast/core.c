/* Token statistics, DMSA and running sums as loops; nbs/29_core.ipynb shows each function under its equation.
   The file includes itself twice, for float and for double: NAME(tssa) is tssa_float32, then tssa_float64. */
#ifndef real
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GLIBC__)
#define PUBLIC __attribute__((visibility("default"), target_clones("fma", "default"))) void
#elif defined(_WIN32)
#define PUBLIC __declspec(dllexport) void
#else
#define PUBLIC __attribute__((visibility("default"))) void
#endif
#ifdef _MSC_VER
#define PART static __forceinline void
#define restrict __restrict
#else
#define PART static inline __attribute__((always_inline)) void
#endif

#define TINY 1e-24
#define FLOOR 1e-8
#define BLOCK 64
#define ROWS 8
#define IN const real *restrict
#define OUT real *restrict
#define SUM double *restrict
#define SAMPLES I from, I to, I n, I h, I p
#define SCRATCH double *sums, real *work
typedef ptrdiff_t I;
static inline float fast_exp(float x) {
    float k, y = 1, power;
    if (x < -87) x = -87;
    k = x*1.44269504f + 12582912.f - 12582912.f;
    x = x - k*0.693359375f + k*2.12194440e-4f;
    for (int i = 7; i; i--) y = 1 + y*x*(1.f/i);
    uint32_t bits = (uint32_t)((int32_t)k + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return y*power;
}
#define real float
#define EXP fast_exp
#define NAME(f) f##_float32
#include "core.c"
#undef real
#undef EXP
#undef NAME
#define real double
#define EXP exp
#define NAME(f) f##_float64
#include "core.c"
#else

PART NAME(flush)(I d, OUT part, SUM sum) {
    for (I i = 0; i < d; i++) { sum[i] += part[i]; part[i] = 0; }
}

PART NAME(weigh)(I m, I h, I p, IN u, IN v, IN q, OUT part) {
    I d = h*p, j = 0;
    for (; j + 4 <= m; j += 4, u += 4*d, v += 4*d, q += 4*h)
        for (I k = 0; k < h; k++) {
            const real a = q[k], b = q[h + k], c = q[2*h + k], e = q[3*h + k];
            for (I i = k*p; i < k*p + p; i++)
                part[i] += (a*(u[i]*v[i]) + b*(u[d + i]*v[d + i]))
                         + (c*(u[2*d + i]*v[2*d + i]) + e*(u[3*d + i]*v[3*d + i]));
        }
    for (; j < m; j++, u += d, v += d, q += h)
        for (I k = 0; k < h; k++)
            for (I i = k*p; i < k*p + p; i++) part[i] += q[k]*(u[i]*v[i]);
}
PART NAME(shares)(I m, I h, I p, IN u, IN v, IN r, OUT x) {
    for (I j = 0; j < m; j++, u += h*p, v += h*p, x += h)
        for (I k = 0; k < h; k++) {
            real sum = 0;
            #pragma omp simd reduction(+:sum)
            for (I i = k*p; i < k*p + p; i++) sum += r[i]*(u[i]*v[i]);
            x[k] = sum;
        }
}

PART NAME(energy)(I n, I d, IN w, const real *size, OUT ones, OUT part, SUM s) {
    for (I j = 0; j < BLOCK; j++) ones[j] = 1;
    for (I j = (n - 1)/BLOCK*BLOCK; j >= 0; j -= BLOCK) {
        NAME(weigh)(n - j < BLOCK ? n - j : BLOCK, 1, d, w + j*d, w + j*d, size ? size + j : ones, part);
        NAME(flush)(d, part, s);
    }
}
PART NAME(softmax)(I m, I h, OUT x) {
    for (I j = 0; j < m*h; j += h) {
        real top = x[j];
        for (I k = 1; k < h; k++) if (x[j + k] > top) top = x[j + k];
        for (I k = 0; k < h; k++) x[j + k] -= top;
    }
    for (I i = 0; i < m*h; i++) x[i] = EXP(x[i]);
    for (I j = 0; j < m*h; j += h) {
        real sum = 0;
        for (I k = 0; k < h; k++) sum += x[j + k];
        for (I k = 0; k < h; k++) x[j + k] /= sum;
    }
}
PART NAME(count)(I m, I h, IN Pi, const real *size, OUT q, SUM N) {
    for (I j = 0; j < m; j++)
        for (I k = 0; k < h; k++) N[k] += q[j*h + k] = size ? size[j]*Pi[j*h + k] : Pi[j*h + k];
}

PART NAME(assign)(I n, I h, I p, IN w, const real *size, IN r, OUT Pi, OUT q, OUT part, SUM m, SUM N) {
    for (I j = 0, rows; j < n; j += rows, w += rows*h*p, Pi += rows*h) {
        rows = n - j < ROWS ? n - j : ROWS;
        if (j % BLOCK == 0) NAME(flush)(h*p, part, m);
        NAME(shares)(rows, h, p, w, w, r, Pi);
        NAME(softmax)(rows, h, Pi);
        NAME(count)(rows, h, Pi, size ? size + j : 0, q, N);
        NAME(weigh)(rows, h, p, w, w, q, part);
    }
    NAME(flush)(h*p, part, m);
}

PART NAME(update)(I n, I h, I p, IN w, IN Pi, IN a, OUT y) {
    for (I j = n - 1; j >= 0; j--)
        for (I k = 0; k < h; k++) {
            const real *v = w + (j*h + k)*p, pi = -Pi[j*h + k];
            real *o = y + (j*h + k)*p;
            for (I i = 0; i < p; i++) o[i] = v[i]*(pi*a[k*p + i]);
        }
}

PUBLIC NAME(tssa)(SAMPLES, const real *w, const real *temp, const real *size, real *y, real *Pi, double *kept,
                  SCRATCH) {
    I d = h*p;
    for (I b = from; b < to; b++) {
        const real *c = size ? size + b*n : 0;
        real *part = work, *a = work + d, *q = work + 5*d;
        double *s = kept + b*(2*d + h), *m = s + d, *N = m + d;
        for (I i = 0; i < 2*d; i++) s[i] = work[i] = 0;
        for (I k = 0; k < h; k++) N[k] = FLOOR;
        NAME(energy)(n, d, w + b*n*d, c, q, part, s);
        for (I i = 0; i < d; i++) {
            if (s[i] < TINY) s[i] = TINY;
            a[i] = (real)(temp[i/p]/s[i]);
        }
        NAME(assign)(n, h, p, w + b*n*d, c, a, Pi + b*n*h, q, part, m, N);
        for (I i = 0; i < d; i++) a[i] = (real)(1/(1 + (m[i] /= N[i/p])));
        NAME(update)(n, h, p, w + b*n*d, Pi + b*n*h, a, y + b*n*d);
    }
}

PART NAME(pull)(I n, I h, I p, IN w, IN g, IN Pi, IN a, OUT r, OUT part, SUM sum) {
    for (I j = (n - 1)/ROWS*ROWS; j >= 0; j -= ROWS) {
        I rows = n - j < ROWS ? n - j : ROWS, at = j*h*p;
        NAME(shares)(rows, h, p, g + at, w + at, a, r + j*h);
        NAME(weigh)(rows, h, p, g + at, w + at, Pi + j*h, part);
        if (j % BLOCK == 0) NAME(flush)(h*p, part, sum);
    }
}

PART NAME(member_grad)(I n, I h, I p, IN w, const real *size, IN Pi, IN delta, const SUM gamma, OUT lam, OUT x,
                       OUT part, SUM t) {
    for (I j = 0, rows; j < n; j += rows, w += rows*h*p) {
        rows = n - j < ROWS ? n - j : ROWS;
        if (j % BLOCK == 0) NAME(flush)(h*p, part, t);
        NAME(shares)(rows, h, p, w, w, delta, x);
        for (I i = 0; i < rows*h; i += h, Pi += h, lam += h) {
            const real c = size ? size[j + i/h] : 1;
            real mean = 0;
            for (I k = 0; k < h; k++) mean += Pi[k]*(lam[k] = c*(x[i + k] - (real)gamma[k]) - lam[k]);
            for (I k = 0; k < h; k++) lam[k] = Pi[k]*(lam[k] - mean);
        }
        NAME(weigh)(rows, h, p, w, w, lam - rows*h, part);
    }
    NAME(flush)(h*p, part, t);
}

PART NAME(code_grad)(I n, I h, I p, IN w, const real *size, IN g, IN Pi, IN lam, IN a, IN delta, IN r, IN e, OUT dw) {
    for (I j = n - 1; j >= 0; j--)
        for (I k = 0; k < h; k++) {
            I at = (j*h + k)*p;
            const real c = size ? size[j] : 1, pi = Pi[j*h + k], l = lam[j*h + k];
            for (I i = k*p; i < k*p + p; i++, at++)
                dw[at] = 2*w[at]*(c*(pi*delta[i] - e[i]) + l*r[i]) - g[at]*(pi*a[i]);
        }
}

PUBLIC NAME(tssa_grad)(SAMPLES, const real *w, const real *temp, const real *size, const real *g, const real *Pi,
                       const double *kept, real *dw, double *dtemp, real *lam, SCRATCH) {
    I d = h*p;
    real *part = work, *a = work + d, *delta = work + 2*d, *r = work + 3*d, *e = work + 4*d, *x = work + 5*d;
    for (I b = from; b < to; b++) {
        const real *v = w + b*n*d, *u = g + b*n*d, *P = Pi + b*n*h, *c = size ? size + b*n : 0;
        const double *s = kept + b*(2*d + h), *m = s + d, *N = m + d;
        double *gamma = sums + d, *dt = dtemp + b*h;
        for (I i = 0; i < d; i++) { part[i] = 0; sums[i] = 0; a[i] = (real)(1/(1 + m[i])); }
        for (I k = 0; k < h; k++) gamma[k] = dt[k] = 0;
        NAME(pull)(n, h, p, v, u, P, a, lam + b*n*h, part, sums);
        for (I i = 0; i < d; i++) {
            double slope = sums[i]/((1 + m[i])*(1 + m[i])*N[i/p]);
            delta[i] = (real)slope;
            gamma[i/p] += slope*m[i];
            sums[i] = 0;
        }
        NAME(member_grad)(n, h, p, v, c, P, delta, gamma, lam + b*n*h, x, part, sums);
        for (I i = 0; i < d; i++) {
            double t = sums[i]/s[i], slope = temp[i/p]/s[i];
            dt[i/p] += t;
            r[i] = (real)slope;
            e[i] = s[i] > TINY ? (real)(t*slope) : 0;
        }
        NAME(code_grad)(n, h, p, v, c, u, P, lam + b*n*h, a, delta, r, e, dw + b*n*d);
    }
}

PART NAME(group)(I n, I h, I p, IN w, const real *size, IN Pi, OUT q, OUT part, SUM m, SUM N) {
    for (I j = (n - 1)/BLOCK*BLOCK; j >= 0; j -= BLOCK) {
        I rows = n - j < BLOCK ? n - j : BLOCK;
        NAME(count)(rows, h, Pi + j*h, size ? size + j : 0, q, N);
        NAME(weigh)(rows, h, p, w + j*h*p, w + j*h*p, q, part);
        NAME(flush)(h*p, part, m);
    }
}

PUBLIC NAME(dmsa)(SAMPLES, const real *w, const real *Pi, const real *mask, const real *size, real *y, double *kept,
                  SCRATCH) {
    I d = h*p;
    real *part = work, *a = work + d, *q = work + 5*d;
    for (I b = from; b < to; b++) {
        double *m = kept + b*(d + h), *N = m + d;
        for (I i = 0; i < d; i++) m[i] = part[i] = 0;
        for (I k = 0; k < h; k++) N[k] = 0;
        NAME(group)(n, h, p, w + b*n*d, size ? size + b*n : 0, Pi + b*n*h, q, part, m, N);
        for (I k = 0; k < h; k++) N[k] += FLOOR;
        for (I i = 0; i < d; i++) {
            double mu = mask[b*h + i/p];
            m[i] /= N[i/p];
            a[i] = (real)(mu/(1 + mu*mu*m[i]));
        }
        NAME(update)(n, h, p, w + b*n*d, Pi + b*n*h, a, y + b*n*d);
    }
}
PART NAME(dmsa_codes)(I n, I h, I p, IN w, IN g, IN Pi, const real *size, IN a, IN delta, const SUM gamma, OUT dPi,
                      OUT dw) {
    for (I j = 0; j < n; j++)
        for (I k = 0; k < h; k++) {
            I at = (j*h + k)*p;
            real x = 0, pi = Pi[j*h + k], c = size ? size[j] : 1, twice = 2*c;
            #pragma omp simd reduction(+:x)
            for (I i = 0; i < p; i++) {
                real v = w[at + i];
                x += delta[k*p + i]*(v*v);
                dw[at + i] = pi*(twice*v*delta[k*p + i] - g[at + i]*a[k*p + i]);
            }
            dPi[j*h + k] = c*(x - (real)gamma[k]) - dPi[j*h + k];
        }
}

PUBLIC NAME(dmsa_grad)(SAMPLES, const real *w, const real *Pi, const real *mask, const real *size, const real *g,
                       const double *kept, real *dw, real *dPi, double *dmask, SCRATCH) {
    I d = h*p;
    real *part = work, *a = work + d, *delta = work + 2*d;
    for (I b = from; b < to; b++) {
        const real *v = w + b*n*d, *u = g + b*n*d, *P = Pi + b*n*h, *mu = mask + b*h;
        const double *m = kept + b*(d + h), *N = m + d;
        double *gamma = sums + d;
        for (I i = 0; i < d; i++) {
            sums[i] = part[i] = 0;
            a[i] = (real)(mu[i/p]/(1 + (double)mu[i/p]*mu[i/p]*m[i]));
        }
        for (I k = 0; k < h; k++) gamma[k] = dmask[b*h + k] = 0;
        NAME(pull)(n, h, p, v, u, P, a, dPi + b*n*h, part, sums);
        for (I i = 0; i < d; i++) {
            double x = mu[i/p], y = 1 + x*x*m[i], slope = x*x*x*sums[i]/(y*y*N[i/p]);
            delta[i] = (real)slope;
            gamma[i/p] += slope*m[i];
            dmask[b*h + i/p] -= sums[i]*(2 - y)/(y*y);
        }
        NAME(dmsa_codes)(n, h, p, v, u, P, size ? size + b*n : 0, a, delta, gamma, dPi + b*n*h, dw + b*n*d);
    }
}

PART NAME(turn)(I m, I d, IN x, IN turns, real way, OUT y) {
    for (I i = 0; i < m*d; i += 2) {
        const real c = turns[i], s = way*turns[i + 1], a = x[i], b = x[i + 1];
        y[i] = a*c - b*s;
        y[i + 1] = a*s + b*c;
    }
}
PART NAME(product)(I m, I h, I d, IN x, IN W, OUT s) {
    for (; m > 0; m -= 4, x += 4*d, s += 4*h) {
        const real *x1 = x + (m > 1)*d, *x2 = x + 2*(m > 2)*d, *x3 = x + 3*(m > 3)*d;
        for (I k = 0; k < h; k++) {
            real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            #pragma omp simd reduction(+:s0, s1, s2, s3)
            for (I i = 0; i < d; i++) {
                const real v = W[k*d + i];
                s0 += v*x[i], s1 += v*x1[i], s2 += v*x2[i], s3 += v*x3[i];
            }
            s[k] = s0;
            if (m > 1) s[h + k] = s1;
            if (m > 2) s[2*h + k] = s2;
            if (m > 3) s[3*h + k] = s3;
        }
    }
}

PUBLIC NAME(rotary)(SAMPLES, const real *x, const real *W, const real *near, const real *far, real *s, SCRATCH) {
    I d = p;
    real *V = work, *turned = work + h*d;
    for (I j = from*n; j < to*n; ) {
        I c = j % n % BLOCK, left = n - j % n, rows = left < ROWS ? left : ROWS;
        if (!c) for (I k = 0; k < h; k++) NAME(turn)(1, d, W + k*d, far + j % n/BLOCK*d, -1, V + k*d);
        NAME(turn)(rows, d, x + j*d, near + c*d, 1, turned);
        NAME(product)(rows, h, d, turned, V, s + j*h);
        j += rows;
    }
}
PART NAME(mix)(I m, I d, I step, IN g, IN rows, OUT y) {
    for (; m >= 4; m -= 4, g += 4*step, rows += 4*d) {
        const real a = g[0], b = g[step], c = g[2*step], e = g[3*step];
        for (I i = 0; i < d; i++) y[i] += (a*rows[i] + b*rows[d + i]) + (c*rows[2*d + i] + e*rows[3*d + i]);
    }
    for (; m > 0; m--, g += step, rows += d)
        for (I i = 0; i < d; i++) y[i] += g[0]*rows[i];
}

PART NAME(block_grad)(I n, I h, I d, const real *x, const real *W, const real *near, const real *far, const real *g,
                      real *dx, double *dW, OUT part, OUT V, OUT turned, OUT y) {
    for (I i = 0; i < h*d; i++) part[i] = 0;
    for (I k = 0; k < h; k++) NAME(turn)(1, d, W + k*d, far, -1, V + k*d);
    for (I j = 0, rows; j < n; j += rows) {
        rows = n - j < ROWS ? n - j : ROWS;
        NAME(turn)(rows, d, x + j*d, near + j*d, 1, turned);
        for (I k = 0; k < h; k++) NAME(mix)(rows, d, h, g + j*h + k, turned, part + k*d);
        for (I i = 0; i < rows*d; i++) y[i] = 0;
        for (I i = 0; i < rows; i++) NAME(mix)(h, d, 1, g + (j + i)*h, V, y + i*d);
        NAME(turn)(rows, d, y, near + j*d, -1, dx + j*d);
    }
    for (I k = 0; k < h; k++) NAME(turn)(1, d, part + k*d, far, 1, V + k*d);
    NAME(flush)(h*d, V, dW);
}

PUBLIC NAME(rotary_grad)(SAMPLES, const real *x, const real *W, const real *near, const real *far, const real *g,
                         real *dx, double *dW, SCRATCH) {
    I d = p;
    real *V = work + h*d, *turned = V + h*d, *y = turned + ROWS*d;
    for (I b = from; b < to; b++) {
        for (I i = 0; i < h*d; i++) dW[b*h*d + i] = 0;
        for (I j = 0; j < n; j += BLOCK) {
            I at = b*n + j;
            NAME(block_grad)(n - j < BLOCK ? n - j : BLOCK, h, d, x + at*d, W, near, far + j/BLOCK*d, g + at*h,
                             dx + at*d, dW + b*h*d, work, V, turned, y);
        }
    }
}

PART NAME(causal_assign)(I h, I p, IN w, IN temp, IN bias, const SUM rho, const SUM f, IN S, OUT l, OUT Pi) {
    for (I k = 0; k < h; k++) {
        real x = 0, before = (real)f[k], lost = (real)(1 - rho[k]), tiny = (real)TINY;
        #pragma omp simd reduction(+:x)
        for (I i = k*p; i < k*p + p; i++) {
            real sq = w[i]*w[i], c;
            l[i] += sq - lost*l[i];
            c = l[i] + before*S[i];
            x += sq/(c < tiny ? tiny : c);
        }
        Pi[k] = temp[k]*(bias ? x + bias[k] : x);
    }
    NAME(softmax)(1, h, Pi);
}
PART NAME(causal_update)(I h, I p, IN w, IN Pi, const SUM rho, const SUM f, IN S, OUT l, SUM count, OUT y) {
    for (I k = 0; k < h; k++) {
        count[k] = rho[k]*count[k] + Pi[k];
        real before = (real)f[k], lost = (real)(1 - rho[k]);
        real pi = Pi[k], size = (real)(count[k] + FLOOR), top = -pi*size;
        for (I i = k*p; i < k*p + p; i++) {
            l[i] += pi*(w[i]*w[i]) - lost*l[i];
            y[i] = w[i]*top/(size + (l[i] + before*S[i]));
        }
    }
}
PART NAME(join)(I d, I p, const SUM f, IN l, SUM state) {
    for (I i = 0; i < d; i++) state[i] = f[i/p]*state[i] + l[i];
}

PUBLIC NAME(causal_tssa)(SAMPLES, const real *w, const real *temp, const real *bias, const double *rate,
                         const double *before, real *y, real *Pi, real *starts, double *after, SCRATCH) {
    I d = h*p, size = 2*d + h, blocks = (n + BLOCK - 1)/BLOCK;
    real *l = work;
    double *count = sums + 2*d, *f = sums + size, *rho = f + h;
    for (I k = 0; k < h; k++) rho[k] = rate ? exp2(-rate[k]) : 1;
    for (I b = from; b < to; b++) {
        real *S = starts + b*blocks*size;
        for (I i = 0; i < size; i++) sums[i] = before ? before[b*size + i] : 0;
        for (I start = 0; start < n; start += BLOCK, S += size) {
            I end = start + BLOCK < n ? start + BLOCK : n;
            for (I i = 0; i < size; i++) S[i] = (real)sums[i];
            for (I i = 0; i < 2*d; i++) l[i] = 0;
            for (I k = 0; k < h; k++) f[k] = 1;
            for (I j = start, at = b*n + start; j < end; j++, at++) {
                for (I k = 0; k < h; k++) f[k] *= rho[k];
                NAME(causal_assign)(h, p, w + at*d, temp, bias ? bias + j*h : 0, rho, f, S, l, Pi + at*h);
                NAME(causal_update)(h, p, w + at*d, Pi + at*h, rho, f, S + d, l + d, count, y + at*d);
            }
            NAME(join)(d, p, f, l, sums);
            NAME(join)(d, p, f, l + d, sums + d);
        }
        for (I i = 0; i < size; i++) after[b*size + i] = sums[i];
    }
}

PART NAME(causal_sums)(I m, I h, I p, IN w, IN Pi, const SUM rho, IN S, OUT l, SUM f, SUM count, OUT C1, OUT C2,
                       OUT C3) {
    I d = h*p;
    for (I i = 0; i < 2*d; i++) l[i] = 0;
    for (I k = 0; k < h; k++) { f[k] = 1; count[k] = S[2*d + k]; }
    for (I j = 0; j < m; j++, w += d, Pi += h, C1 += d, C2 += d, C3 += h)
        for (I k = 0; k < h; k++) {
            f[k] *= rho[k];
            count[k] = rho[k]*count[k] + Pi[k];
            C3[k] = (real)(count[k] + FLOOR);
            real pi = Pi[k], before = (real)f[k], lost = (real)(1 - rho[k]);
            for (I i = k*p; i < k*p + p; i++) {
                real sq = w[i]*w[i];
                l[i] += sq - lost*l[i];
                l[d + i] += pi*sq - lost*l[d + i];
                C1[i] = l[i] + before*S[i];
                C2[i] = l[d + i] + before*S[d + i];
            }
        }
}

PART NAME(causal_lambda)(I h, I p, IN w, IN g, const SUM rho, const SUM f, IN Pi, IN C2, IN C3, IN E, OUT l, SUM e3,
                         OUT over, OUT lam) {
    real mean = 0;
    for (I k = 0; k < h; k++) {
        real pi = Pi[k], size = C3[k], later = (real)f[k], lost = (real)(1 - rho[k]), x = 0, total = 0, group = 0;
        #pragma omp simd reduction(+:x, total, group)
        for (I i = k*p; i < k*p + p; i++) {
            real o = over[i] = 1/(size + C2[i]), q = g[i]*w[i]*o;
            l[i] += pi*size*(q*o) - lost*l[i];
            x += (l[i] + later*E[i])*(w[i]*w[i]);
            total += q;
            group += q*(C2[i]*o);
        }
        e3[k] = rho[k]*e3[k] - pi*group;
        lam[k] = x - size*total + (real)e3[k];
        mean += pi*lam[k];
    }
    for (I k = 0; k < h; k++) lam[k] = Pi[k]*(lam[k] - mean);
}
PART NAME(causal_codes)(I h, I p, IN w, IN g, IN temp, IN bias, const SUM rho, const SUM f, IN Pi, IN C1, IN C3,
                        IN E, OUT l, IN over, IN lam, SUM dtemp, OUT dw) {
    I d = h*p;
    for (I k = 0; k < h; k++) {
        real pi = Pi[k], size = C3[k], later = (real)f[k], lost = (real)(1 - rho[k]);
        real x = 0, slope = lam[k]*temp[k], tiny = (real)TINY;
        #pragma omp simd reduction(+:x)
        for (I i = k*p; i < k*p + p; i++) {
            real o = 1/(C1[i] < tiny ? tiny : C1[i]), share = w[i]*w[i]*o, s = slope*o;
            x += share;
            l[i] += (C1[i] > tiny ? s*share : 0) - lost*l[i];
            dw[i] = 2*w[i]*(pi*(l[d + i] + later*E[d + i]) + s - (l[i] + later*E[i])) - g[i]*(pi*size*over[i]);
        }
        dtemp[k] += lam[k]*(double)(bias ? x + bias[k] : x);
    }
}
PART NAME(rho_grad)(I h, I p, const SUM f, IN C1, IN C2, IN C3, double floor, IN E, IN l, const SUM e3, SUM drho) {
    I d = h*p;
    for (I k = 0; k < h; k++) {
        real x = 0, later = (real)f[k];
        #pragma omp simd reduction(+:x)
        for (I i = k*p; i < k*p + p; i++)
            x += (l[d + i] + later*E[d + i])*C2[i] - (l[i] + later*E[i])*C1[i];
        drho[k] += x + e3[k]*(C3[k] - floor);
    }
}

PART NAME(causal_block_grad)(I m, I h, I p, const real *w, const real *temp, const real *bias, const double *rho,
                             const real *g, const real *Pi, const real *S, real *dw, real *lam, double *dtemp,
                             double *drho, double *e3, double *f, double *count, real *l, real *E, real *over,
                             real *C) {
    I d = h*p;
    real *C1 = C, *C2 = C + BLOCK*d, *C3 = C2 + BLOCK*d;
    NAME(causal_sums)(m, h, p, w, Pi, rho, S, l, f, count, C1, C2, C3);
    for (I i = 0; i < 2*d; i++) l[i] = 0;
    for (I k = 0; k < h; k++) f[k] = 1;
    for (I j = m - 1; j >= 0; j--) {
        const real *v = w + j*d, *u = g + j*d, *P = Pi + j*h, *c1 = C1 + j*d, *c2 = C2 + j*d, *c3 = C3 + j*h;
        for (I k = 0; k < h; k++) f[k] *= rho[k];
        NAME(causal_lambda)(h, p, v, u, rho, f, P, c2, c3, E + d, l + d, e3, over, lam + j*h);
        NAME(causal_codes)(h, p, v, u, temp, bias ? bias + j*h : 0, rho, f, P, c1, c3, E, l, over, lam + j*h, dtemp,
                           dw + j*d);
        if (!drho) continue;
        if (j) NAME(rho_grad)(h, p, f, c1 - d, c2 - d, c3 - h, FLOOR, E, l, e3, drho);
        else NAME(rho_grad)(h, p, f, S, S + d, S + 2*d, 0, E, l, e3, drho);
    }
}

PUBLIC NAME(causal_tssa_grad)(SAMPLES, const real *w, const real *temp, const real *bias, const double *rate,
                              const real *g, const real *Pi, const real *starts, I by_rate, real *dw, real *lam,
                              double *dtemp, double *drate, SCRATCH) {
    I d = h*p, size = 2*d + h, blocks = (n + BLOCK - 1)/BLOCK;
    real *l = work, *E = work + 2*d, *over = work + 4*d, *C = work + 5*d;
    double *e3 = sums + 2*d, *f = e3 + h, *count = f + h, *rho = count + h;
    for (I k = 0; k < h; k++) rho[k] = rate ? exp2(-rate[k]) : 1;
    for (I b = from; b < to; b++) {
        for (I i = 0; i < size; i++) sums[i] = 0;
        for (I k = 0; k < h; k++) dtemp[b*h + k] = drate[b*h + k] = 0;
        for (I block = blocks - 1; block >= 0; block--) {
            I j = block*BLOCK, at = b*n + j;
            for (I i = 0; i < 2*d; i++) E[i] = (real)sums[i];
            NAME(causal_block_grad)(n - j < BLOCK ? n - j : BLOCK, h, p, w + at*d, temp, bias ? bias + j*h : 0, rho,
                g + at*d, Pi + at*h, starts + (b*blocks + block)*size, dw + at*d, lam + at*h,
                dtemp + b*h, by_rate ? drate + b*h : 0, e3, f, count, l, E, over, C);
            NAME(join)(d, p, f, l, sums);
            NAME(join)(d, p, f, l + d, sums + d);
        }
        for (I k = 0; k < h; k++) drate[b*h + k] *= -log(2)*rho[k];
    }
}
#endif
