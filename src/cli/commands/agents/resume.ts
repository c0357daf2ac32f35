import { actionVerb } from './action.ts'

export const verb = actionVerb('resume_session', {
  name: 'resume',
  summary: 'let deliveries to a paused agent go on',
  details: 'What `orc stop --all` stopped goes on with `orc go`.',
})
