import type { Explanation } from '../../../rules/decide.ts'
import { ACTIONS, type Action, type Verdict } from '../../../rules/rule.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { loadTeam } from '../../connection/offline.ts'
import { paint, plain, print, printJson, type Style } from '../../output/print.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { approvalText } from './show.ts'

export const verb: Verb = {
  name: 'rules explain',
  summary: 'explain which rule allows or forbids a message or an action',
  details: `ACTION is one of: ${Object.keys(ACTIONS).join(', ')}.\nUses the rules of the running service, or orc.yaml while none runs.`,
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
  const client = await openClientIfRunning(location)
  if (client !== undefined) {
    const answer = await client.explain({ from, to, ...(action === undefined ? {} : { action }) })
    return { ...(answer as unknown as Explanation), source: 'the running service' }
  }
  const config = await loadTeam(location)
  const [{ compileRules }, { explain }] = await Promise.all([
    import('../../../rules/compile.ts'),
    import('../../../rules/decide.ts'),
  ])
  return { ...explain(compileRules(config), from, to, action), source: config.file ?? 'orc.yaml' }
}

function lineText(line: number | undefined): string {
  return line === undefined ? '' : ` (line ${line})`
}
