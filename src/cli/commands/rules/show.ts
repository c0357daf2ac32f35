import type { Config } from '../../../config/config.ts'
import {
  ACTIONS,
  type Action,
  type Approval,
  type Permissions,
  type Rule,
  type Who,
} from '../../../rules/rule.ts'
import { loadTeam } from '../../connection/offline.ts'
import { fitted, table } from '../../output/layout.ts'
import { paint, plain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'rules show',
  summary: 'show the rules and permissions in orc.yaml, with line numbers',
  examples: ['orc rules show', 'orc rules show --json', 'orc rules explain Worker Master'],
  async run({ location, json }) {
    const config = await loadTeam(location)
    const { rules, permissions, approvals } = config
    if (json) {
      const agents = config.agents.map(({ name, parent, send, receive, permissions }) => ({
        name,
        parent,
        send,
        receive,
        permissions,
      }))
      printJson({ file: config.file, rules, permissions, approvals, agents })
    } else print(fitted(rulesText(config)))
    return 0
  },
}

function rulesText(config: Config): string {
  const { rules, agents } = config
  const sections = [
    `${paint('bold', 'preset')}  ${rules.preset}${rules.hub === undefined ? '' : `, the hub is ${rules.hub}`}${lineOf(config, 'rules.preset')}`,
    ...(['forbid', 'ask', 'allow'] as const).flatMap((list) => listText(config, list, rules[list])),
    ...narrowingText(config),
    paint('bold', 'permissions'),
    permissionsText('everyone', config.permissions, (action) => placeOf(config, `permissions.${action}`)),
    ...agents.map(({ name, permissions }) =>
      permissionsText(name, permissions, (action) => placeOf(config, `agents.${name}.permissions.${action}`)),
    ),
    paint('dim', `  otherwise  ${silentText()}`),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function listText(config: Config, list: string, rules: readonly Rule[]): string[] {
  if (rules.length === 0) return []
  const rows = rules.map(({ from, to, reason }, index) => [
    `${whoText(from)} → ${whoText(to)}`,
    `${reason === undefined ? '' : plain(reason)}${placeOf(config, `rules.${list}[${index}]`)}`,
  ])
  return [paint('bold', list), table(rows, '  ')]
}

/** Restrictions of single agents. */
function narrowingText(config: Config): string[] {
  return config.agents.flatMap(({ name, send, receive }) => [
    ...(send === undefined
      ? []
      : [`${paint('bold', name)} writes only to ${whoText(send)}${lineOf(config, `agents.${name}.send`)}`]),
    ...(receive === undefined
      ? []
      : [
          `${paint('bold', name)} accepts only from ${whoText(receive)}${lineOf(config, `agents.${name}.receive`)}`,
        ]),
  ])
}

function permissionsText(who: string, permissions: Permissions, line: (action: string) => string): string {
  const said = Object.entries(permissions).filter(([, verdict]) => verdict !== undefined)
  if (said.length === 0) return ''
  return `  ${who}  ${said.map(([action, verdict]) => `${action}: ${verdict}${line(action)}`).join(', ')}`
}

/** Exceptions to the defaults table: an agent may read the log of its descendants. */
const IN_FULL: Partial<Record<Action, string>> = { read_log: "its own descendants' only" }

function silentText(): string {
  return (Object.keys(ACTIONS) as Action[])
    .map((action) => `${action}: ${IN_FULL[action] ?? ACTIONS[action].silent}`)
    .join(', ')
}

function whoText(who: Who): string {
  return who.length === 0 ? 'nobody' : who.map((name) => (name === '*' ? 'everyone' : name)).join(', ')
}

function placeOf(config: Config, path: string): string {
  return `${waitsFor(config, path)}${lineOf(config, path)}`
}

function waitsFor({ approvals }: Config, path: string): string {
  return approvals[path] === undefined ? '' : ` [${plain(approvalText(approvals[path]))}]`
}

function lineOf({ lines }: Config, path: string): string {
  return lines[path] === undefined ? '' : paint('dim', ` (line ${lines[path]})`)
}

/** The required approvers: `2 of ada, ben, cleo`. */
export function approvalText({ approvers, quorum }: Approval = { quorum: 1 }): string {
  if (approvers !== undefined) {
    return quorum === approvers.length && quorum === 1
      ? approvers[0]!
      : `${quorum} of ${approvers.join(', ')}`
  }
  return quorum === 1 ? 'a person' : `${quorum} people`
}
