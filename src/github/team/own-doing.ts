import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Tx } from '../../store/store.ts'
import { type Action, actionKey } from '../core/action.ts'
import { withoutMentions } from '../core/notice.ts'
import { insertAction } from '../store/actions.ts'

/** Where the service itself says or marks something, and why: of one source the same is done once, whatever happens. */
export interface OwnPlace {
  readonly source: string
  readonly repository: string
  readonly number: number
}

const ERROR_LABEL = 'agent-error'

/** A comment of the service. `tagged`: logins that are called by it; in what it quotes of agents, nobody else is. */
export async function say(tx: Tx, place: OwnPlace, text: string, tagged: readonly string[] = []) {
  const body = [withoutMentions(text, tagged), ...tagged.map((login) => `@${login}`)].join(' ')
  await insertOwn(tx, place, { kind: 'comment', number: place.number, body })
}

/** S3.12. */
export async function labelError(tx: Tx, place: OwnPlace) {
  await insertOwn(tx, place, { kind: 'label', number: place.number, label: ERROR_LABEL })
}

async function insertOwn(tx: Tx, { source, repository, number }: OwnPlace, action: Action) {
  await insertAction(tx, {
    key: actionKey(source, action),
    work: source,
    agent: ORCHESTRATOR,
    repository,
    number,
    action: JSON.stringify(action),
    confidence: null,
    rationale: '',
    state: 'ready',
    request: null,
    note: null,
  })
}
