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
 * @throws RangeError for another site, and for a device, an MTU or an address with a fault: all texts rely on their form
 */
export function endAt(
  reservation: Reservation,
  site: string,
  device: string,
  { outer = '802.1ad', mtu = USUAL_MTU, address }: EndChoices = {},
): End {
  const { id, start_date, end_date, site1, site2 } = reservation;
  const fault = deviceFault(device) ?? mtuFault(mtu) ?? (address && addressFault(address, mtu));
  if (fault) throw new RangeError(fault);
  if (site !== site1 && site !== site2) throw new RangeError(`The reservation has no end at ${site}.`);
  const [own, other] = site === site1 ? ([1, 2] as const) : ([2, 1] as const);
  const [sTag, cTag] = [reservation[`site${own}_s_tag`], reservation[`site${own}_c_tag`]];
  return {
    reservation: { id, start_date, end_date },
    ...{ site, otherSite: reservation[`site${other}`], device, sTag, cTag, outer },
    otherSTag: reservation[`site${other}_s_tag`],
    otherCTag: reservation[`site${other}_c_tag`],
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
  const [, host = '', digits = ''] = /^([0-9A-Fa-f.:]{2,45})\/(0|[1-9][0-9]{0,2})$/.exec(address) ?? [];
  if (host === '') return 'An address has a prefix length, such as 10.0.0.1/24 or fd00::1/64.';
  const isV6 = isIpv6Address(host);
  const bits = bitsOf(host);
  if (bits === undefined) {
    return isV6
      ? `${host} is not an IPv6 address: it has eight groups of 0 to ffff, or :: in place of zeros.`
      : `${host} is not an IPv4 address: it has four numbers of 0 to 255, without leading zeros.`;
  }
  const length = Number(digits);
  if (length < 1 || length > bits.length) return `The prefix length is 1 to ${bits.length}.`;
  if (isV6 && mtu < IPV6_MTU) return `IPv6 needs an MTU of ${IPV6_MTU} or more.`;
  const own = bits.slice(length);
  // Two addresses, or one, are all for servers (RFC 3021, RFC 6164).
  const isNetwork = own.length >= 2;
  const is = (v4: RegExp, v6: RegExp): boolean => (isV6 ? v6 : v4).test(bits);
  if (is(/^01{7}/, /^0+1$/)) return 'It is the loopback, which reaches no other server.';
  if (is(/^111/, /^1{8}/)) return 'It is an address of a group or for all, and no server’s own.';
  if (is(/^0{8}/, /^0+$/)) return 'It is no server’s own.';
  if (isNetwork && /^0+$/.test(own))
    return 'It names the whole network: a server has another number in it, such as 1.';
  if (isNetwork && !isV6 && /^1+$/.test(own))
    return 'It is for all in the network: a server has a smaller number.';
  return undefined;
}

/** The 32 or 128 bits of an address; undefined where it has another form. */
function bitsOf(host: string): string | undefined {
  const isV6 = isIpv6Address(host);
  const url = `http://${isV6 ? `[${host}]` : host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  const bits = (numbers: readonly string[], base: number, size: number): string =>
    numbers.map((digits) => Number.parseInt(digits, base).toString(2).padStart(size, '0')).join('');
  // A URL takes other forms of IPv4 too, and writes all of them like this.
  if (!isV6) return hostname === host && /^[\d.]+$/.test(host) ? bits(host.split('.'), 10, 8) : undefined;
  // It has an IPv6 address with hexadecimal numbers only, and `::` for zeros.
  const [before = '', after = ''] = hostname.slice(1, -1).split('::');
  const [high, low] = [before, after].map((part) => bits(part.split(':').filter(Boolean), 16, 16));
  return `${high}${(low ?? '').padStart(128 - (high ?? '').length, '0')}`;
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
