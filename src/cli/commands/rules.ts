import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import type { Explanation } from '../../rules/decide.ts'
import {
  ACTIONS,
  type Action,
  type Approval,
  type Permissions,
  type Rule,
  type Verdict,
  type Who,
} from '../../rules/rule.ts'
import { askIfRunning, loadTeam } from '../connection/client.ts'
import { exitCode, noTeam } from '../errors.ts'
import { counted, fitted, table } from '../output/layout.ts'
import { complain, paint, plain, print, printJson, type Style, warn } from '../output/print.ts'
import type { Invocation, Verb } from '../verb.ts'

export const show: Verb = {
  name: 'rules show',
  summary: 'show the rules and permissions in orc.yaml, with line numbers',
  examples: ['orc rules show', 'orc rules show --json', 'orc rules explain Worker Master'],
  async run({ location, show }) {
    const config = await loadTeam(location)
    const { file, rules, permissions, approvals } = config
    const agents = config.agents.map(({ name, parent, send, receive, permissions: own }) => {
      return { name, parent, send, receive, permissions: own }
    })
    return show({ file, rules, permissions, approvals, agents }, () => fitted(rulesText(config)))
  },
}

function rulesText(config: Config): string {
  const { rules, agents } = config
  const sections = [
    `${paint('bold', 'preset')}  ${rules.preset}${rules.hub === undefined ? '' : `, the hub is ${rules.hub}`}${lineOf(config, 'rules.preset')}`,
    ...(['forbid', 'ask', 'allow'] as const).flatMap((list) => listText(config, list, rules[list])),
    ...restrictionsText(config),
    paint('bold', 'permissions'),
    permissionsText('everyone', config.permissions, (action) => positionOf(config, `permissions.${action}`)),
    ...agents.map(({ name, permissions }) =>
      permissionsText(name, permissions, (action) =>
        positionOf(config, `agents.${name}.permissions.${action}`),
      ),
    ),
    paint('dim', `  otherwise  ${defaultsText()}`),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function listText(config: Config, list: string, rules: readonly Rule[]): string[] {
  if (rules.length === 0) return []
  const rows = rules.map(({ from, to, reason }, index) => [
    `${whoText(from)} → ${whoText(to)}`,
    `${reason === undefined ? '' : plain(reason)}${positionOf(config, `rules.${list}[${index}]`)}`,
  ])
  return [paint('bold', list), table(rows, '  ')]
}

/** Restrictions of single agents. */
function restrictionsText(config: Config): string[] {
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
  const set = Object.entries(permissions).filter(([, verdict]) => verdict !== undefined)
  if (set.length === 0) return ''
  return `  ${who}  ${set.map(([action, verdict]) => `${action}: ${verdict}${line(action)}`).join(', ')}`
}

/** Defaults that a single verdict can't express. */
const OTHER_DEFAULTS: Partial<Record<Action, string>> = { read_log: "its own descendants' only" }

function defaultsText(): string {
  return (Object.keys(ACTIONS) as Action[])
    .map((action) => `${action}: ${OTHER_DEFAULTS[action] ?? ACTIONS[action].byDefault}`)
    .join(', ')
}

function whoText(who: Who): string {
  return who.length === 0 ? 'nobody' : who.map((name) => (name === '*' ? 'everyone' : name)).join(', ')
}

function positionOf(config: Config, path: string): string {
  return `${approversText(config, path)}${lineOf(config, path)}`
}

function approversText({ approvals }: Config, path: string): string {
  return approvals[path] === undefined ? '' : ` [${plain(approvalText(approvals[path]))}]`
}

function lineOf({ lines }: Config, path: string): string {
  return lines[path] === undefined ? '' : paint('dim', ` (line ${lines[path]})`)
}

/** The required approvers: `2 of ada, ben, cleo`. */
function approvalText({ approvers, quorum }: Approval = { quorum: 1 }): string {
  if (approvers !== undefined) {
    return quorum === approvers.length && quorum === 1
      ? approvers[0]!
      : `${quorum} of ${approvers.join(', ')}`
  }
  return quorum === 1 ? 'a person' : `${quorum} people`
}

export const explainRule: Verb = {
  name: 'rules explain',
  summary: 'explain which rule allows or forbids a message or an action',
  details: `ACTION is one of: ${Object.keys(ACTIONS).join(', ')}.\nUses the rules of the running service or, if none is running, orc.yaml.`,
  arguments: [
    { name: 'FROM' },
    { name: 'TO' },
    { name: 'ACTION', optional: true, choices: Object.keys(ACTIONS) },
  ],
  examples: ['orc rules explain Worker Master', 'orc rules explain Master Worker spawn_agent'],
  async run(invocation) {
    const [from, to, action] = invocation.words
    const { source, decision, steps } = await explanationOf(invocation)
    if (invocation.json)
      printJson({ from, to, ...(action === undefined ? {} : { action }), source, decision, steps })
    else {
      print(`${paint(COLOUR[decision.verdict], decision.verdict)}  ${plain(decision.reason)}`)
      print(`  decided by ${plain(decision.rule)}${lineText(decision.line)}, in ${source}`)
      if (decision.verdict === 'ask') print(`  needs approval by ${plain(approvalText(decision.approval))}`)
      print('rules checked, in this order:')
      for (const step of steps) {
        print(`  ${step.verdict ?? '–'}  ${plain(step.rule)}${lineText(step.line)}: ${plain(step.reason)}`)
      }
    }
    return 0
  },
}

const COLOUR: Record<Verdict, Style> = { allow: 'green', deny: 'red', ask: 'yellow' }

async function explanationOf({ words, location }: Invocation): Promise<Explanation & { source: string }> {
  const [from, to] = words as [string, string]
  const action = words[2] as Action | undefined
  const query = { from, to, ...(action === undefined ? {} : { action }) }
  const answer = await askIfRunning(location, (client) => client.explain(query))
  if (answer !== undefined) return { ...(answer as unknown as Explanation), source: 'the running service' }
  const config = await loadTeam(location)
  const [{ compileRules }, { explain }] = await Promise.all([
    import('../../rules/compile.ts'),
    import('../../rules/decide.ts'),
  ])
  return { ...explain(compileRules(config), from, to, action), source: config.file ?? 'orc.yaml' }
}

function lineText(line: number | undefined): string {
  return line === undefined ? '' : ` (line ${line})`
}

export const check: Verb = {
  name: 'rules check',
  summary: 'check an orc.yaml and show its mistakes with line numbers',
  arguments: [{ name: 'FILE', optional: true }],
  examples: ['orc rules check', 'orc rules check new.yaml --json'],
  async run({ words, location, json }) {
    const file = words[0] ?? location.configFile
    if (file === undefined || !existsSync(file)) throw noTeam(file)
    const [{ formatProblems }, { readTeam }] = await Promise.all([
      import('../../config/config.ts'),
      import('../../main.ts'),
    ])
    const loaded = readTeam(file)
    const problems = loaded.ok ? [] : loaded.error
    const warnings = loaded.ok ? loaded.value.warnings : []
    if (json) printJson({ ok: loaded.ok, file, problems, warnings })
    else {
      if (problems.length > 0) complain(plain(formatProblems(problems, file)))
      if (warnings.length > 0) warn(plain(formatProblems(warnings, file)))
      if (loaded.ok)
        print(`${paint('green', 'ok')}  ${file}: ${counted(loaded.value.config.agents.length, 'agent')}`)
    }
    return exitCode(loaded.ok ? 'ok' : 'error')
  },
}
