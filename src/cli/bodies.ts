/**
 * Which field the body fills, for the built-in commands: a copy of what the registry says, because loading the
 * schemas would double the time of a short command. A test compares the two. Others are asked of the service.
 */
export const BODIES: Readonly<Record<string, { field?: string; required?: true }>> = {
  send_message: { field: 'content', required: true },
  mailbox_check: {},
  query_mailbox: {},
  update_status: { field: 'current_task' },
  request_action: { field: 'reason' },
  query_state: {},
  list_agents: {},
  context_status: {},
  acknowledge: { field: 'ids', required: true },
}
