import { EVERYONE, foldName, OPERATOR, RESERVED_NAMES } from '../base/agent.ts'
import type { Person } from '../base/person.ts'
import { didYouMean } from '../base/suggestion.ts'
import type { Approval } from '../rules/rule.ts'
import type { Path, Report } from '../yaml/problem.ts'
import { findCycles } from './cycles.ts'
import { type ConfigInput, MINIMAL_EXAMPLE } from './schema.ts'

type Agents = ConfigInput['agents']

/** Resolves mentions to canonical names and reports unknown ones. */
export interface Roster {
  readonly names: readonly string[]
  one(mention: string, path: Path): string | undefined
  /** A name, several, or `*`. */
  who(mention: string | readonly string[], path: Path): string[]
}

/** Each suggestion compares with every name, so a file full of errors gets a limited number. */
const SUGGESTIONS = 50

export function readRoster(agents: Agents, report: Report): Roster {
  const names = Object.keys(agents)
  const byFold = new Map<string, string>()
  for (const name of names) {
    const other = byFold.get(name.toLowerCase())
    if (RESERVED_NAMES.has(name.toLowerCase())) {
      report(
        ['agents', name],
        `"${name}" is reserved for the service or its people`,
        'Choose another name for the agent.',
        'key',
      )
    } else if (other !== undefined) {
      const message = `"${other}" and "${name}" differ only in case`
      report(['agents', name], message, 'Rename one of them.', 'key')
    } else byFold.set(name.toLowerCase(), name)
  }
  if (names.length === 0) report(['agents'], 'There are no agents', `A minimal example: ${MINIMAL_EXAMPLE}`)

  let suggestions = SUGGESTIONS
  function one(mention: string, path: Path): string | undefined {
    const name = byFold.get(mention.toLowerCase())
    if (name === undefined) {
      const shown = names.slice(0, 10).join(', ')
      const otherwise = `The agents are ${shown}${names.length > 10 ? ', …' : ''}.`
      const hint = suggestions-- > 0 ? didYouMean(mention, names, otherwise) : otherwise
      report(path, `There is no agent "${mention.slice(0, 64)}"`, hint)
    }
    return name
  }
  function who(mention: string | readonly string[], path: Path): string[] {
    if (typeof mention === 'string') return mention === EVERYONE ? [EVERYONE] : list(one(mention, path))
    if (mention.includes(EVERYONE) && mention.length > 1) {
      report(path, 'must not combine "*" with names', 'Keep either "*" or the names.')
    }
    return mention.flatMap((name, index) =>
      name === EVERYONE ? [EVERYONE] : list(one(name, [...path, index])),
    )
  }
  return { names, one, who }
}

function list(name: string | undefined): string[] {
  return name === undefined ? [] : [name]
}

/** Parents must lead to a root. Reports each cycle once. */
export function checkParents(parents: ReadonlyMap<string, string>, report: Report): void {
  for (const cycle of findCycles(parents)) {
    const first = cycle[0]!
    const shown = cycle.length > 8 ? [...cycle.slice(0, 8), '…'] : cycle
    const message =
      cycle.length === 1
        ? `"${first}" is its own parent`
        : `The parents form a cycle: ${[...shown, first].join(' → ')}`
    report(['agents', first, 'parent'], message, 'Remove the parent of the agent at the top.')
  }
}

type PermissionsInput = ConfigInput['permissions']
interface ApprovalInput {
  readonly approvers?: readonly string[] | undefined
  readonly quorum?: number | undefined
}

/** The audit names people and agents side by side, so no two of them may share a name. */
export function resolvePeople(input: ConfigInput, report: Report): Person[] {
  const taken = new Map(Object.keys(input.agents).map((name) => [foldName(name), `the agent ${name}`]))
  const people: Person[] = []
  for (const [name, written] of Object.entries(input.people ?? {})) {
    const folded = foldName(name)
    const other = taken.get(folded)
    if (RESERVED_NAMES.has(folded)) {
      report(
        ['people', name],
        `"${name}" is reserved for the service or its people`,
        folded === OPERATOR ? 'The operator always exists; remove the entry.' : 'Choose another name.',
        'key',
      )
    } else if (other !== undefined) {
      report(['people', name], `"${name}" has the same name as ${other}`, 'Rename one of them.', 'key')
    } else taken.set(folded, `the person ${name}`)
    people.push({
      name,
      role: written?.role ?? 'operator',
      ...(written?.github === undefined ? {} : { github: written.github }),
    })
  }
  checkLogins(people, report)
  return people
}

/** A login must identify one person, because approvals on GitHub count for that person. */
function checkLogins(people: readonly Person[], report: Report) {
  for (const [index, { name, github }] of people.entries()) {
    const twin = people.slice(0, index).find((one) => one.github?.toLowerCase() === github?.toLowerCase())
    if (github === undefined || twin === undefined) continue
    report(
      ['people', name, 'github'],
      `${twin.name} already has the login "${github}"`,
      'Give each person a different login.',
    )
  }
}

/** Approvers and quorum, keyed by the path of the rule or permission that asks. */
export function resolveApprovals(
  input: ConfigInput,
  people: readonly Person[],
  report: Report,
): Record<string, Approval> {
  const approvals: Record<string, Approval> = {}
  function note(key: string, path: Path, written: ApprovalInput) {
    if (written.approvers === undefined && written.quorum === undefined) return
    approvals[key] = resolveApproval(written, path, people, report)
  }
  function notePermissions(prefix: string, path: Path, permissions: PermissionsInput) {
    for (const [action, written] of Object.entries(permissions ?? {})) {
      if (typeof written === 'object') note(`${prefix}.${action}`, [...path, action], written)
    }
  }
  for (const [index, rule] of (input.rules?.ask ?? []).entries()) {
    note(`rules.ask[${index}]`, ['rules', 'ask', index], rule)
  }
  notePermissions('permissions', ['permissions'], input.permissions)
  for (const [name, agent] of Object.entries(input.agents)) {
    notePermissions(`agents.${name}.permissions`, ['agents', name, 'permissions'], agent?.permissions)
  }
  return approvals
}

export function resolveApproval(
  { approvers, quorum = 1 }: ApprovalInput,
  path: Path,
  people: readonly Person[],
  report: Report,
): Approval {
  const able = [OPERATOR, ...people.filter(({ role }) => role === 'operator').map(({ name }) => name)]
  const named = approvers?.map((mention, index) => {
    const person = people.find(({ name }) => foldName(name) === foldName(mention))
    const name = foldName(mention) === OPERATOR ? OPERATOR : person?.name
    const at = [...path, 'approvers', index]
    if (name === undefined) {
      report(
        at,
        `There is no person "${mention.slice(0, 64)}"`,
        didYouMean(mention, able, 'Add them under "people".'),
      )
    } else if (!able.includes(name)) {
      report(at, `${name} is a ${person!.role} and cannot approve`, 'Give them the role operator.')
    }
    return name ?? mention
  })
  const list = named === undefined ? undefined : [...new Set(named)]
  const most = (list ?? able).length
  if (quorum > most) {
    report(
      [...path, 'quorum'],
      `The quorum is ${quorum}, but only ${most === 1 ? 'one person' : `${most} people`} can approve`,
      list === undefined ? 'Add more people under "people".' : 'List more approvers, or lower the quorum.',
    )
  }
  return { ...(list === undefined ? {} : { approvers: list }), quorum }
}
