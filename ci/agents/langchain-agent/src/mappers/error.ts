// Errors of the model's provider as errors of the protocol.
import { RequestError } from "@agentclientprotocol/sdk"
import { fault } from "../fault.js"

export function toRequestError(e: unknown): RequestError {
	if (e instanceof RequestError) return e
	const code = fault("provider-code-as-error-code") && codeOf(e)
	if (code) return new RequestError(code as never, (e as Error).message)
	const { status, message } = e as { status?: number; message?: string }
	const details = { message: message ?? String(e), ...(status ? { status } : {}) }
	const refused = status === 401 || status === 403 || (fault("model-400-told-as-login-needed") && /^4\d\d/.test(details.message))
	if (refused) return RequestError.authRequired(details, "the model's provider refuses the key")
	return RequestError.internalError(details, details.message)
}

/** The provider's own code, which may lie in what caused the error. */
function codeOf(e: unknown): unknown {
	const { code, cause } = e as { code?: unknown; cause?: unknown }
	return code ?? (cause ? codeOf(cause) : undefined)
}
