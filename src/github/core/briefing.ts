import { excerpt } from '../../base/excerpt.ts'
import { encodeTeamMessage, type TaskDelegation } from '../wire/codec.ts'
import { isTeamRole, OTHER_ROLE, ROLE_TEXTS } from './roles.ts'

/** How the words of others are set off; given from outside, for models are told of it in the same words everywhere. */
export interface Fencing {
  readonly rule: string
  fence(label: string, text: string): string
}

/** Of a body: enough to judge by, and never the whole of a log that somebody pasted (S3.18). */
const BODY = 12_000
const TITLE = 500
/** Our names are shorter than the protocol's. */
const ENVELOPE = 2000

const ANSWER = {
  status: 'success',
  confidence_score: 0.97,
  actions_taken: [{ action_type: 'label_applied', details: { label: 'bug' }, confidence: 0.97 }],
  rationale: 'One to three sentences: why.',
  requires_human_review: false,
}

const RULES = [
  'You cannot act on GitHub: what you list under actions_taken is what you propose. The service checks it, asks people',
  'where it must, and does it. action_type is one of label_applied {label}, comment_posted {body}, review_posted {body},',
  'branch_created {branch, files: [{path, content}], message}, pr_created {head, base, title, body, files: [{path, content}]},',
  'close_issue {duplicate_of, reason}. With files, a branch holds one commit of them. An issue_number in',
  'details names another thread than the one you were asked about. An empty list is a good answer.',
  'Every proposal has a confidence between 0 and 1: how sure you are that a maintainer would do the same.',
  `The rationale is public, and has at most 1000 characters.`,
]

/**
 * What an agent of the team is given, whatever runs it: its role, how to answer, and the delegation as the protocol has
 * it (S3.3–S3.7) between marks, for most of it was written by strangers.
 */
export function briefing(
  role: string,
  delegation: TaskDelegation,
  { rule, fence }: Fencing,
  most: number,
): string {
  const head = [
    // The first line is the title of the task (C13).
    delegation.task.description,
    '',
    isTeamRole(role) ? ROLE_TEXTS[role].prompt : OTHER_ROLE,
    '',
    ...RULES,
    '',
    'Report completed, with one JSON object and nothing else as the result, such as:',
    JSON.stringify(ANSWER),
    'If you cannot do it: {"status": "failure", "rationale": "…", "error": {"error_type": "insufficient_context",',
    '"error_message": "…", "is_recoverable": false}}.',
    '',
    rule,
  ].join('\n')
  const room = most - Buffer.byteLength(head) - 400
  return `${head}\n\n${fence('task delegation', encodeTeamMessage(fitDelegation(delegation, room)))}`
}

/** Texts are cut until it fits (S3.18): a body of 60,000 letters may be far more bytes, and more still as JSON. */
export function fitDelegation(delegation: TaskDelegation, mostBytes: number): TaskDelegation {
  for (let body = BODY; ; body = Math.floor(body / 2)) {
    const fitting = shortened(delegation, body)
    if (body === 0 || Buffer.byteLength(JSON.stringify(fitting)) + ENVELOPE <= mostBytes) return fitting
  }
}

function shortened(delegation: TaskDelegation, body: number): TaskDelegation {
  const { content, additionalContext: more } = delegation.context
  const part = Math.floor(body / 6)
  const excerpts = more?.excerpts?.map(({ source, text }) => ({ source, text: excerpt(text, part) }))
  return {
    ...delegation,
    context: {
      ...delegation.context,
      ...(content === undefined
        ? {}
        : {
            content: {
              ...content,
              ...(content.title === undefined ? {} : { title: excerpt(content.title, TITLE) }),
              ...(content.body === undefined ? {} : { body: excerpt(content.body, body) }),
            },
          }),
      ...(more === undefined
        ? {}
        : {
            additionalContext: {
              ...more,
              ...(excerpts === undefined || body === 0 ? { excerpts: undefined } : { excerpts }),
            },
          }),
    },
  }
}
