import type { GithubConfig } from '../../config/config.ts'
import type { Action, Proposal } from '../core/action.ts'
import { type Circumstances, DEFAULT_POLICIES, type Judged, judge } from '../core/policy.ts'

/** In a text it is taken out; a file without it would be another file. */
const SECRET: Judged = { verdict: 'refuse', reason: 'a file or a name holds what looks like a secret' }

/** The policy of orc.yaml on a proposal, be it an agent's or what a person made of it. */
export function judgeProposal(
  { actions, confidence: threshold }: GithubConfig,
  redact: (text: string) => string,
  proposal: Proposal,
  about: Omit<Circumstances, 'threshold'>,
): Judged {
  const { action } = proposal
  // A text is cleaned before it goes out; of a name or a file with a secret in it nothing would be left.
  if (namesAndFiles(action).some((text) => redact(text) !== text)) return SECRET
  return judge(proposal, actions[action.kind] ?? DEFAULT_POLICIES[action.kind], { threshold, ...about })
}

function namesAndFiles(action: Action): string[] {
  const { files = [], ...rest } = action as { files?: readonly { path: string; content: string }[] }
  const names = Object.entries(rest).flatMap(([field, value]) =>
    typeof value === 'string' && field !== 'body' && field !== 'message' ? [value] : [],
  )
  return [...names, ...files.flatMap(({ path, content }) => [path, content])]
}
