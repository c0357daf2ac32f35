import { foldName, OPERATOR, RESERVED_NAMES } from '../base/agent.ts'
import type { Person } from '../base/person.ts'
import { didYouMean } from '../base/suggestion.ts'
import type { Approval } from '../rules/rule.ts'
import type { Path, Report } from '../yaml/problem.ts'
import type { ConfigInput } from './schema.ts'

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
