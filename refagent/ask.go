package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// askTool is the tool by which the model asks the user a question: by a form with one field, or by a web page to
// open.
const askTool = "ask_user"

// answerKey is the name of the form's only field.
const answerKey = "answer"

func askSchema() object {
	s := schema("question", "url?")
	s["properties"].(object)["options"] = object{
		"type": "array", "items": object{"type": "string"}, "description": "The answers to choose from",
	}
	return s
}

// askUser asks the user the model's question through an elicitation. If the editor does not support the elicitation,
// the tool's result tells the model to ask the question in its answer.
func askUser(ctx context.Context, w *work) error {
	caps, url := w.a.capabilities(), w.args.str("url")
	var params object
	switch {
	case url != "" && caps.ElicitURL:
		params = object{"mode": "url", "url": url, "elicitationId": w.s.id + "/" + w.id}
	case url == "" && caps.ElicitForm:
		params = object{"mode": "form", "requestedSchema": w.form()}
	default:
		w.say("The editor cannot show this to the user. Ask in your answer instead.")
		return nil
	}
	params["sessionId"], params["toolCallId"], params["message"] = w.s.id, w.id, w.args.str("question")
	var result struct {
		Action  string
		Content json.RawMessage
	}
	if err := w.s.ask(ctx, "elicitation/create", params, &result); err != nil {
		return fmt.Errorf("the question did not reach the user: %w", err)
	}
	switch {
	case result.Action == "decline":
		w.say("The user declined to answer.")
	case result.Action == "cancel":
		w.say("The user closed the question without an answer.")
	case result.Action != "accept":
		w.say("The question was not answered.")
	case url != "":
		// For a page, the action accept means only that the user agreed to open the page.
		w.say("The user agreed to open the page. What came of it is not known.")
	default:
		answer, err := w.chosen(result.Content)
		if err != nil {
			return err
		}
		w.say("The user answered: " + answer)
	}
	return nil
}

func (w *work) say(text string) { w.content, w.result = textContent(text), text }

func (w *work) form() object {
	field := object{"type": "string", "title": "Answer"}
	if options := w.choices(); len(options) > 0 {
		field["enum"] = options
	}
	return object{"type": "object", "properties": object{answerKey: field}, "required": []string{answerKey}}
}

func (w *work) choices() (out []string) {
	list, _ := w.args["options"].([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// chosen returns the user's answer. It returns an error if the answer does not fit the form, because an editor may
// send an invalid one.
func (w *work) chosen(content json.RawMessage) (string, error) {
	var form object
	_ = json.Unmarshal(content, &form) // missing or invalid content means an empty answer
	answer, ok := form[answerKey].(string)
	if !ok {
		return "", errors.New("the form came back without an answer")
	}
	if options := w.choices(); len(options) > 0 && !slices.Contains(options, answer) {
		return "", errors.New("the answer is not one of the options")
	}
	return answer, nil
}
