import { Failure, shellWord } from '../../contract/failure.ts';
import { hinted } from '../../session/choice.ts';
import { assumedOf, type End, protocolName } from '../../vlan/end.ts';
import { describeEnd } from '../../vlan/formats.ts';
import { deleteCall, ipCalls, iproute2, type ProgramCall, setCall, shellLine } from '../../vlan/iproute2.ts';
import type { Context, Machine } from '../context.ts';
import { addressesOf, type Device, devicesOf, withPrograms } from '../probe/devices.ts';
import { idsIn, tagsAt } from '../probe/stacks.ts';
import { checkConfirmable, confirm } from '../questions.ts';

/** A call, and the call that takes its effect back, where there is something to take back. */
interface Step {
  readonly call: ProgramCall;
  readonly undo?: ProgramCall;
}

/**
 * Makes the devices of an end on this machine, or removes them: reads what is there, shows what it would run,
 * and asks. Devices that are there already stay, so that the command can be run again.
 *
 * @throws Failure `usage` for a conflict, before anything is changed; `not_supported` for a command that the
 *   kernel refused: what was done before it is taken back. Declined when the answer is no
 */
export async function applyEnd(context: Context, end: End, removing: boolean): Promise<void> {
  const { output } = context;
  const machine = withPrograms(context.processes);
  const unasked = 'The changes to network devices were not confirmed.';
  checkConfirmable(context, unasked);
  const devices = await devicesOf(machine);
  const steps = removing ? stepsToRemove(end, devices) : await stepsToMake(end, devices, machine);
  if (steps.length > 0) {
    output.prompt(removing ? 'This removes the devices:' : 'This makes the devices:');
    for (const { call } of steps) output.prompt(`  ${shellLine(call)}`);
    const question = steps.length === 1 ? 'Run this command?' : `Run these ${steps.length} commands?`;
    await confirm(context, question, { unasked, declined: 'Nothing was changed.' });
    await runAll(steps, machine);
  }
  const ran = steps.map(({ call }) => shellLine(call));
  const result = { ...describeEnd(end, iproute2(end), removing), ran };
  await output.result(result, ({ paint: { green } }) => {
    if (!removing) {
      return `${ran.length === 0 ? 'Everything is there already' : green('Applied')}: the end at ${end.site}\n`;
    }
    return ran.length === 0
      ? `There is no ${end.names.inner} here: nothing to remove.\n`
      : `${green('Removed')} ${removed(end, steps)} at ${end.site}\n`;
  });
  if (output.json || removing) return;
  for (const line of summary(end)) output.notice(line);
}

/** An end in a line, and what was assumed, for people. @param names of a tool that takes no dots, other ones */
export function summary(end: End, { outer, inner } = end.names): readonly string[] {
  const { site, device, sTag, cTag, mtu } = end;
  return [
    `${site}: ${device} → ${outer} (S-tag ${sTag}, ${protocolName(end.outer)}) → ${inner} (C-tag ${cTag}). MTU ${mtu.device} → ${mtu.outer} → ${mtu.inner}.`,
    ...assumedOf(end),
  ];
}

/** The outer device stays where it carries another one. @throws Failure `usage` for a conflict */
function stepsToRemove({ device, names }: End, devices: readonly Device[]): readonly Step[] {
  const own = (name: string, due: string): Device | undefined => {
    const found = devices.find((one) => one.name === name);
    if (!found || (found.tag !== undefined && found.parent === due)) return found;
    throw conflict(found, `it is not a VLAN of ${due}`);
  };
  const [outer, inner] = [own(names.outer, device), own(names.inner, names.outer)];
  const isShared = devices.some(({ name, parent }) => parent === names.outer && name !== names.inner);
  const first = isShared ? inner : outer;
  return first ? [{ call: deleteCall(first.name) }] : [];
}

/** The devices that the steps of a removal have removed, in words. */
function removed({ names: { outer, inner } }: End, steps: readonly Step[]): string {
  return steps.some(({ call }) => call.includes(inner))
    ? `${inner}; ${outer} carries another device, and stays,`
    : `${outer} and ${inner}`;
}

/** The steps that are still needed. @throws Failure `usage` for a conflict */
async function stepsToMake(end: End, devices: readonly Device[], machine: Machine): Promise<readonly Step[]> {
  const { device, names, mtu, address } = end;
  const below = devices.find(({ name }) => name === device);
  if (!below) {
    const all = devices.map(({ name }) => name);
    throw new Failure('usage', hinted(`This machine has no network device ${device}.`, device, all), {
      why: `It has ${all.join(', ')}.`,
      fix: 'ip link',
    });
  }
  const [outerTag, innerTag] = tagsAt(end);
  // Several reservations may share the outer one: it has the MTU of the largest.
  const outer = existing(devices, { name: names.outer, parent: device, tag: outerTag });
  const inner = existing(devices, { name: names.inner, parent: names.outer, tag: innerTag, mtu: mtu.inner });
  const calls = ipCalls(end);
  const steps: Step[] = [];
  // A larger MTU stays: a smaller one would take the devices of others with it.
  if (below.mtu < mtu.device) {
    const undo = setCall(device, 'mtu', String(below.mtu), ...(below.isUp ? [] : ['down']));
    steps.push({ call: calls.device, undo });
  } else if (!below.isUp) steps.push({ call: calls.up.device, undo: setCall(device, 'down') });
  if (!outer) steps.push({ call: calls.outer, undo: deleteCall(names.outer) });
  else if (outer.mtu < mtu.outer) {
    steps.push({ call: calls.outerMtu, undo: setCall(names.outer, 'mtu', String(outer.mtu)) });
  }
  if (!inner) steps.push({ call: calls.inner, undo: deleteCall(names.inner) });
  const addresses = inner ? await addressesOf(names.inner, machine) : [];
  if (calls.address && address !== null && !addresses.includes(address)) {
    steps.push({ call: calls.address, undo: ['ip', 'address', 'del', address, 'dev', names.inner] });
  }
  if (!outer?.isUp) steps.push({ call: calls.up.outer, undo: setCall(names.outer, 'down') });
  if (!inner?.isUp) steps.push({ call: calls.up.inner, undo: setCall(names.inner, 'down') });
  return steps;
}

/**
 * The VLAN device that is due, where it is there already.
 *
 * @throws Failure `usage` when a device of its name, or with its tag on the same parent, differs in anything
 */
function existing(
  devices: readonly Device[],
  due: Pick<Device, 'name' | 'parent'> & { tag: string; mtu?: number },
): Device | undefined {
  const isSame = (tag = ''): boolean => idsIn(tag) === idsIn(due.tag);
  const found = devices.filter(
    ({ name, parent, tag }) => name === due.name || (parent === due.parent && isSame(tag)),
  );
  for (const one of found) {
    for (const [what, is = 'none', wanted = is] of [
      ['tag', one.tag, due.tag],
      ['device below', one.parent, due.parent],
      ['name', one.name, due.name],
      ['MTU', one.mtu, due.mtu],
    ]) {
      if (is !== wanted) throw conflict(one, `its ${what} is ${is}, and ${wanted} is due`);
    }
  }
  return found[0];
}

function conflict({ name }: Device, why: string): Failure {
  return new Failure('usage', `The device ${name} is in the way.`, {
    why: `There is one already: ${why}. Nothing was changed.`,
    fix: `ip -d link show ${shellWord(name)}`,
  });
}

/** Runs steps. After a failure the earlier ones are undone, last first. @throws Failure `not_supported` */
async function runAll(steps: readonly Step[], { runProgram }: Machine): Promise<void> {
  /** Why a call failed, as a sentence; undefined where it did not. */
  const faultOf = async (call: ProgramCall): Promise<string | undefined> => {
    const { exitCode, stderr } = await runProgram(call);
    if (exitCode === 0) return undefined;
    const [said = ''] = stderr.trim().split('\n');
    return said === '' ? `It ended with ${exitCode}.` : `It said: ${said.replace(/\.?$/, '.')}`;
  };
  for (const [at, { call }] of steps.entries()) {
    const fault = await faultOf(call);
    if (fault === undefined) continue;
    const lines: string[] = [];
    for (const { undo } of steps.slice(0, at).toReversed()) {
      const stays = undo && (await faultOf(undo));
      if (undo && stays !== undefined) lines.push(`${shellLine(undo)}: ${stays}`);
    }
    // Of a VLAN device the kernel says no more than this.
    const lacks = call.includes('vlan') && /unknown device type|operation not supported/i.test(fault);
    const missing = lacks ? ' This kernel has no 802.1Q, or its module is not loaded.' : '';
    const undone =
      lines.length === 0
        ? 'What was done before was taken back.'
        : 'Not everything could be taken back. What failed:';
    throw new Failure('not_supported', `This command failed: ${shellLine(call)}`, {
      ...{ why: `${fault}${missing} ${undone}`, lines },
      ...(lacks ? { fix: 'sudo modprobe 8021q' } : {}),
    });
  }
}
