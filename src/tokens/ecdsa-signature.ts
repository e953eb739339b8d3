/** ASN.1's tags of a sequence and of an integer, and the mark of a length that takes a byte of its own (X.690 §8). */
const SEQUENCE = 0x30;
const INTEGER = 0x02;
const LENGTH_FOLLOWS = 0x81;

/**
 * An ECDSA signature as OpenSSL takes it, the DER of RFC 3279 §2.2.3, from one as a JWS carries it: r and s side by
 * side, each as wide as the curve's order (RFC 7518 §3.4). Every pair of numbers has this one DER, so what can be
 * forged in one form can't be in the other (HOSTILE.md 24).
 *
 * @param signature an even number of bytes, 132 at most (P-521)
 */
export function derFromJws(signature: Uint8Array): Uint8Array {
  const width = signature.length / 2;
  const r = firstDigit(signature, 0, width);
  const s = firstDigit(signature, width, width * 2);
  const ofR = width - r + pad(signature, r);
  const ofS = width * 2 - s + pad(signature, s);
  const content = ofR + ofS + 4;
  const head = content < 0x80 ? 2 : 3;
  const der = Buffer.alloc(head + content);
  der[0] = SEQUENCE;
  if (head === 3) der[1] = LENGTH_FOLLOWS;
  der[head - 1] = content;
  der[head] = INTEGER;
  der[head + 1] = ofR;
  der.set(signature.subarray(r, width), head + 2 + pad(signature, r));
  der[head + 2 + ofR] = INTEGER;
  der[head + 3 + ofR] = ofS;
  der.set(signature.subarray(s), head + 4 + ofR + pad(signature, s));
  return der;
}

/**
 * The other way: what OpenSSL signed, as a JWS carries it.
 *
 * @param der as OpenSSL made it: nothing of it is checked
 * @param width of each number, in bytes: 32 for P-256
 */
export function jwsFromDer(der: Uint8Array, width: number): Buffer {
  const signature = Buffer.alloc(width * 2);
  let at = der[1] === LENGTH_FOLLOWS ? 3 : 2;
  for (const end of [width, width * 2]) {
    const start = at + 2;
    at = start + (der[at + 1] ?? 0);
    // A zero byte before a number whose first bit is set is no digit of it.
    const digits = der.subarray(Math.max(start, at - width), at);
    signature.set(digits, end - digits.length);
  }
  return signature;
}

/** Where a number's digits start, which is its last byte where it is zero. */
function firstDigit(bytes: Uint8Array, from: number, to: number): number {
  let index = from;
  while (index < to - 1 && bytes[index] === 0) index += 1;
  return index;
}

/** A number whose first bit is set has a zero byte before it, since DER's numbers have a sign. */
function pad(bytes: Uint8Array, first: number): 0 | 1 {
  return (bytes[first] ?? 0) < 0x80 ? 0 : 1;
}
