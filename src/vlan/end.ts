import type { Reservation } from '../contract/reservation.ts';
import { characterCode } from '../contract/visible-text.ts';

/** The ethertype of each outer protocol: IEEE 802.1ad is 0x88a8, 802.1Q is 0x8100. */
export const OUTER_PROTOCOLS = ['802.1ad', '802.1q'] as const;
/** One of {@link OUTER_PROTOCOLS}. */
export type OuterProtocol = (typeof OUTER_PROTOCOLS)[number];

/** The ethertype of frames with an outer tag, as a capture shows it. */
export const ETHERTYPE: Readonly<Record<OuterProtocol, string>> = { '802.1ad': '0x88a8', '802.1q': '0x8100' };

/** The largest packet that fits Ethernet without jumbo frames, in bytes. */
export const USUAL_MTU = 1500;

/** The assumptions of the text for a server, where a reservation says nothing. */
export interface EndChoices {
  /** Default 802.1ad. */
  outer?: OuterProtocol;
  /** The largest packet of the inner device, in bytes. Default {@link USUAL_MTU}. */
  mtu?: number;
  /** The inner device's address with its prefix length, see {@link addressFault}. Default: none. */
  address?: string;
}

/** One end of a reservation on a server: all that is needed to write the text for it. */
export interface End {
  readonly reservation: Pick<Reservation, 'id' | 'start_date' | 'end_date'>;
  readonly site: string;
  readonly otherSite: string;
  /** The server's network device that reaches the site's switch, such as `eth1`. */
  readonly device: string;
  readonly sTag: number;
  readonly cTag: number;
  /** The tags at the other site; frames arrive with this site's. */
  readonly otherSTag: number;
  readonly otherCTag: number;
  readonly outer: OuterProtocol;
  /** The largest packet of each device, in bytes: each tag takes {@link TAG_BYTES} of the one below. */
  readonly mtu: { readonly device: number; readonly outer: number; readonly inner: number };
  readonly address: string | null;
  /** The devices that are made; see {@link namesOf}. */
  readonly names: DeviceNames;
}

/** How many bytes a VLAN tag takes. */
export const TAG_BYTES = 4;

/**
 * One end of a reservation.
 *
 * @param site one of the reservation's two
 * @param device a name without a {@link deviceFault}
 * @returns undefined where the site is not one of the reservation's
 * @throws RangeError for a device, an MTU or an address with a fault: all texts rely on their form
 */
export function endAt(
  reservation: Reservation,
  site: string,
  device: string,
  { outer = '802.1ad', mtu = USUAL_MTU, address }: EndChoices = {},
): End | undefined {
  const { id, start_date, end_date, site1, site2 } = reservation;
  if (site !== site1 && site !== site2) return undefined;
  const faulty = deviceFault(device) ?? mtuFault(mtu) ?? (address && addressFault(address, mtu));
  if (faulty) throw new RangeError(faulty);
  const [s1, c1, s2, c2] = [
    reservation.site1_s_tag,
    reservation.site1_c_tag,
    reservation.site2_s_tag,
    reservation.site2_c_tag,
  ];
  const [sTag, cTag, otherSTag, otherCTag] = site === site1 ? [s1, c1, s2, c2] : [s2, c2, s1, c1];
  return {
    reservation: { id, start_date, end_date },
    site,
    otherSite: site === site1 ? site2 : site1,
    device,
    sTag,
    cTag,
    otherSTag,
    otherCTag,
    outer,
    mtu: { device: mtu + 2 * TAG_BYTES, outer: mtu + TAG_BYTES, inner: mtu },
    address: address ?? null,
    names: namesOf(device, outer, sTag, cTag),
  };
}

/** The names of the two devices that are made at one end. */
export interface DeviceNames {
  /**
   * With the S-tag: `sc`, the tag in four digits, four letters. Reservations of different links may have the
   * same S-tag at a site, and the kernel takes a tag once on a device: so all of them share this one.
   */
  readonly outer: string;
  /** The device with the C-tag, named after the outer one. No other end at the site has both tags then. */
  readonly inner: string;
}

/** Without vowels, so that no words come out. */
const LETTERS = 'bcdfghjkmnpqrstvwxz';

/**
 * Names for the two devices: they follow from what the kernel tells devices apart by, so that reservations
 * share the outer one, and both are found again to be removed. At most 15 characters, which is what the
 * kernel takes. They don't start with `vlan`: ifupdown reads a tag off such a name.
 *
 * The four letters behind the S-tag stand for the device below and the protocol. Those of two are the same
 * once in 130,000 times, which matters for the same S-tag only.
 *
 * @param device that carries the outer one
 * @example namesOf('eth1', '802.1ad', 1001, 17) // { outer: 'sc1001…', inner: 'sc1001….17' }
 */
export function namesOf(device: string, protocol: OuterProtocol, sTag: number, cTag: number): DeviceNames {
  let hash = fingerprint(`${device} ${protocol}`);
  let outer = `sc${String(sTag).padStart(4, '0')}`;
  const base = BigInt(LETTERS.length);
  for (let index = 0; index < 4; index += 1) {
    outer += LETTERS[Number(hash % base)] ?? '';
    hash /= base;
  }
  return { outer, inner: `${outer}.${cTag}` };
}

/** FNV-1a with 64 bits: spreads well, and needs no package in a browser. Not for secrets. */
function fingerprint(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  // The low bits of FNV-1a depend on few of the text's: both halves together do not.
  return hash ^ (hash >> 32n);
}

/**
 * The fault in the name of a network device, as a sentence; undefined for a good name. The kernel takes 1 to
 * 15 bytes without `/`, `:` and spaces, except `.` and `..`. Characters that mean something to a shell, YAML
 * or systemd are refused too, although everything is quoted: no real device has them.
 */
export function deviceFault(name: string): string | undefined {
  if (name === '') return 'The name is empty.';
  const bytes = new TextEncoder().encode(name).length;
  if (bytes > 15) return `The name has ${bytes} bytes, and the kernel takes 15 at most.`;
  if (name === '.' || name === '..') return 'The kernel does not take this name.';
  if (!/^[A-Za-z0-9_.@+-]*$/.test(name)) return 'A name has letters, digits and _ . @ + - only.';
  if (/^[-@+]/.test(name)) return 'A name starts with a letter, a digit, _ or a dot.';
  if (name === 'lo') return 'This is the loopback: it reaches no switch.';
  if (name === 'all' || name === 'default')
    return 'The kernel has no device of this name: it means all of them.';
  return undefined;
}

/** The smallest and largest `--mtu`, in bytes: for IPv4 (RFC 791), and for a device less two tags. */
const MTU_RANGE = { min: 68, max: 65_535 - 2 * TAG_BYTES } as const;

/** The fault in an `--mtu`, as a sentence; undefined for a good one. */
export function mtuFault(mtu: number): string | undefined {
  const { min, max } = MTU_RANGE;
  return Number.isInteger(mtu) && mtu >= min && mtu <= max ? undefined : `An MTU is ${min} to ${max} bytes.`;
}

/** The smallest MTU with which IPv6 works (RFC 8200 §5). */
const IPV6_MTU = 1280;

/**
 * The fault in an address for the inner device, as a sentence; undefined for a good one, such as
 * `10.0.0.1/24` or `fd00::1/64`.
 *
 * @param mtu of the inner device: IPv6 needs 1280
 */
export function addressFault(address: string, mtu: number): string | undefined {
  const form = 'An address has a prefix length, such as 10.0.0.1/24 or fd00::1/64.';
  const [, host = '', digits = ''] = /^([0-9A-Fa-f.:]{2,45})\/(0|[1-9][0-9]{0,2})$/.exec(address) ?? [];
  const length = Number(digits);
  if (isIpv4(host)) {
    return length >= 1 && length <= 32
      ? hostFault(host.split('.').map(Number), 8, length)
      : 'The prefix length is 1 to 32.';
  }
  if (!isIpv6(host)) {
    if (host === '') return form;
    return host.includes(':')
      ? `${host} is not an IPv6 address: it has eight groups of 0 to ffff, or :: in place of zeros.`
      : `${host} is not an IPv4 address: it has four numbers of 0 to 255, without leading zeros.`;
  }
  if (length < 1 || length > 128) return 'The prefix length is 1 to 128.';
  if (mtu < IPV6_MTU) return `IPv6 needs an MTU of ${IPV6_MTU} or more.`;
  return hostFault(groups(host), 16, length);
}

/** Why an address can't be a server's own. @param parts its numbers, each of `bits` bits */
function hostFault(parts: readonly number[], bits: 8 | 16, length: number): string | undefined {
  const isV4 = bits === 8;
  const [first = 0] = parts;
  const address = parts.reduce((sum, part) => (sum << BigInt(bits)) | BigInt(part), 0n);
  if (isV4 ? first === 127 : address === 1n) return 'It is the loopback, which reaches no other server.';
  if (isV4 ? first >= 224 : first >= 0xff00)
    return 'It is an address of a group or for all, and no server’s own.';
  if (isV4 ? first === 0 : address === 0n) return 'It is no server’s own.';
  const left = parts.length * bits - length;
  // Two addresses, or one, are all for servers (RFC 3021, RFC 6164).
  if (left < 2) return undefined;
  const own = address & ((1n << BigInt(left)) - 1n);
  if (own === 0n) return 'It names the whole network: a server has another number in it, such as 1.';
  if (isV4 && own === (1n << BigInt(left)) - 1n)
    return 'It is for all in the network: a server has a smaller number.';
  return undefined;
}

/** The eight numbers of an IPv6 address, in the form that a URL gives it: hexadecimal, `::` for zeros. */
function groups(host: string): readonly number[] {
  const [before = '', after] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split('::');
  const numbers = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((part) => Number.parseInt(part, 16));
  const [high, low] = [numbers(before), numbers(after ?? '')];
  return [...high, ...Array.from({ length: 8 - high.length - low.length }, () => 0), ...low];
}

function isIpv4(host: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(host);
}

function isIpv6(host: string): boolean {
  return host.includes(':') && URL.canParse(`http://[${host}]/`);
}

/**
 * A text in a comment of any format: one line of ASCII. Other characters become their UTF-16 codes, so that a
 * line end can't start a line of its own.
 */
export function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (found) => characterCode(found, 0));
}

/** Lines as comments of a shell script, YAML or INI file; see {@link oneLine}. */
export function commented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `# ${oneLine(line)}`.trimEnd());
}

/** The beginning of every text: its purpose, the origin of the MTUs, and its assumptions. */
export function aboutEnd(end: End): readonly string[] {
  const { reservation, site, otherSite, device, sTag, cTag, mtu, names } = end;
  return [
    `Reservation ${reservation.id}`,
    `${site} (this end) to ${otherSite}, ${reservation.start_date} to ${reservation.end_date}`,
    `${device} carries ${names.outer} (S-tag ${sTag}), which carries ${names.inner} (C-tag ${cTag})`,
    `MTU: ${mtu.inner} + ${TAG_BYTES} for the C-tag = ${mtu.outer}, + ${TAG_BYTES} for the S-tag = ${mtu.device}`,
    ...assumedOf(end),
  ];
}

/** The assumptions of the text, which no reservation states, as sentences. */
export function assumedOf({ outer, mtu, address, otherSite }: End): readonly string[] {
  const smaller = mtu.inner - TAG_BYTES;
  const isPossible = mtuFault(smaller) === undefined && !(address && addressFault(address, smaller));
  return [
    `Assumed: the outer tag is ${protocolName(outer)} (${ETHERTYPE[outer]}), the inner one is 802.1Q (0x8100).`,
    `Assumed: the network carries packets of ${mtu.inner} bytes.${isPossible ? ` Where only small ones arrive, use --mtu ${smaller}.` : ''}`,
    ...(address === null
      ? []
      : [`Assumed: the server at ${otherSite} has an address of the same network as ${address}.`]),
  ].map(oneLine);
}

/** A protocol as `ip`, systemd and NetworkManager write it: they take no other case. */
export function protocolName(protocol: OuterProtocol): '802.1ad' | '802.1Q' {
  return protocol === '802.1ad' ? protocol : '802.1Q';
}

/** Whether an address, which has no fault, is one of IPv6. */
export function isIpv6Address(address: string): boolean {
  return address.includes(':');
}
